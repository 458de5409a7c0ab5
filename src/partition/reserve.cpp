#include "partition/reserve.hpp"

#include <cstdlib>
#include <new>
#include <utility>

namespace ioweir::partition {
namespace {

/// Not made at its first use, for which there may be no memory.
__attribute__((tls_model("initial-exec"))) thread_local Reserve* of_this_thread = nullptr;
std::new_handler handler_before = nullptr;

/// What `new` calls before it tries again.
void find_memory() {
    if (of_this_thread != nullptr && of_this_thread->spend()) return;
    if (handler_before == nullptr) throw std::bad_alloc();
    handler_before();
}

void install() {
    static const bool installed = [] {
        handler_before = std::set_new_handler(find_memory);
        return true;
    }();
    (void)installed;
}

}  // namespace

Reserve::Reserve(std::int64_t bytes) : least_bytes_(bytes) {
    install();
    if (!refill()) throw std::bad_alloc();
}

Reserve::~Reserve() { std::free(memory_); }

bool Reserve::refill(std::int64_t bytes) {
    if (bytes_ >= bytes) return true;
    void* const more = std::realloc(memory_, static_cast<std::size_t>(bytes));
    if (more == nullptr) return false;
    memory_ = more;
    bytes_ = bytes;
    return true;
}

bool Reserve::spend() {
    if (memory_ == nullptr) return false;
    std::free(std::exchange(memory_, nullptr));
    bytes_ = 0;
    return true;
}

Reserve::Use::Use(Reserve& reserve) : before_(std::exchange(of_this_thread, &reserve)) {}

Reserve::Use::~Use() { of_this_thread = before_; }

}  // namespace ioweir::partition
