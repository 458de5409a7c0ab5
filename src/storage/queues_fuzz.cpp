// Fuzzes the state of token buckets, a file that every process maps which uses the targets of a manifest: whatever it says, work that is appended
// ends, and not in the past.
// An input: a byte (how many targets), 8 bytes (the time), and the file, whose length is made right where the byte's highest bit is set.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fuzz_input.hpp"
#include "base/fuzz_target.hpp"
#include "base/testing.hpp"
#include "storage/throttle.hpp"

namespace ioweir {
namespace {

constexpr std::size_t queue_bytes = 64;

/// One file, again and again: in memory where the caller says so by TMPDIR.
class File {
public:
    File() : path_(folder_.file("state")), descriptor_(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
        require(descriptor_ >= 0, "a file for the input");
    }
    ~File() { ::close(descriptor_); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    void put(const std::string& bytes) const {
        require(::ftruncate(descriptor_, std::ssize(bytes)) == 0 &&
                    ::pwrite(descriptor_, bytes.data(), bytes.size(), 0) == std::ssize(bytes),
                "room for the input");
    }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    TemporaryFolder folder_;
    std::string path_;
    int descriptor_;
};

void append(storage::TargetQueues& queues, std::size_t targets, std::int64_t now_ns) {
    constexpr std::int64_t day_ns = std::int64_t{24} * 3600 * 1'000'000'000, usual_rate = 25'000'000;
    for (std::size_t target = 0; target < targets; ++target) {
        require(queues.rate(target, usual_rate) > 0, "a rate");
        std::int64_t last = now_ns;
        for (const std::int64_t bytes : {std::int64_t{1}, std::int64_t{1} << 20, std::int64_t{1} << 50}) {
            const std::int64_t done = queues.append_bytes(target, now_ns, bytes, usual_rate);
            require(done >= now_ns && done - now_ns <= 2 * day_ns, "work that ends");
            require(done >= last || last - now_ns > day_ns, "work that ends after what came before it");
            last = done;
        }
    }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
    const auto queue = [](std::int64_t free_at, std::int64_t rate) {
        return FuzzSeed().number(free_at).number(rate).text(std::string(queue_bytes - 16, '\0')).bytes();
    };
    const auto seed = [](std::uint8_t what, const std::string& bytes) {
        return FuzzSeed().number(what).number(std::int64_t{1'000'000'000'000}).text(bytes).bytes();
    };
    return {seed(2, queue(0, 0) + queue(1'000'000'500'000, 5'000'000)), seed(1, queue(INT64_MAX, 1)), seed(3, ""),
            seed(0x80 | 3, queue(1, 2))};
}

}  // namespace ioweir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ioweir;
    static const File file;
    FuzzInput input(data, size);
    const auto what = input.number<std::uint8_t>();
    const std::size_t targets = 1 + what % 4;
    const std::int64_t now_ns = input.number<std::int64_t>() & INT64_MAX >> 1;
    std::string bytes = input.rest();
    if ((what & 0x80) != 0) bytes.resize(targets * queue_bytes);
    file.put(bytes);
    const auto queues = storage::TargetQueues::open(file.path(), targets);
    if (!queues) {
        require(!queues.error().what.empty(), "an error without words");
        return 0;
    }
    append(*queues.value(), targets, now_ns);
    return 0;
}
