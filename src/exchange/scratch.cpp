#include "exchange/scratch.hpp"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace ioweir::exchange {
namespace {

struct Kept {
    std::unique_ptr<std::byte[]> data;
    std::int64_t bytes;
};

/// More than this many are given back to the system: one per thread that is inside the engine at a time is enough.
constexpr std::size_t most_kept = 8;

/// Never destroyed: a thread may still be inside the engine while the process ends.
struct Shelf {
    std::mutex lock;
    std::vector<Kept> kept;
};
Shelf& shelf() {
    static Shelf* const only = new Shelf;
    return *only;
}

}  // namespace

Scratch::Scratch(std::int64_t bytes) : bytes_(bytes) {
    {
        const std::lock_guard guard(shelf().lock);
        auto& kept = shelf().kept;
        for (std::size_t i = 0; i < kept.size(); ++i) {
            if (kept[i].bytes != bytes) continue;
            data_ = kept[i].data.release();
            kept[i] = std::move(kept.back());
            kept.pop_back();
            return;
        }
    }
    data_ = new std::byte[static_cast<std::size_t>(bytes)];
}

Scratch::~Scratch() {
    std::unique_ptr<std::byte[]> data(data_);
    const std::lock_guard guard(shelf().lock);
    if (shelf().kept.size() < most_kept) shelf().kept.push_back({std::move(data), bytes_});
}

}  // namespace ioweir::exchange
