#include "probe/measure.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <thread>

namespace ioweir::probe {
namespace {

constexpr std::int64_t smallest_write = 64 << 10;
constexpr std::int64_t alignment = 4096;  // of memory, offsets and lengths, as O_DIRECT wants it on every device
constexpr std::int64_t millisecond_ns = 1'000'000;
constexpr std::int64_t lock_interval_ns = 5 * millisecond_ns;
/// A lock is waited for this many probes long.
constexpr std::int64_t patience = 4;

/// Random data for writes: storage that compresses, or keeps equal blocks once, finds nothing to save.
class RandomBlock {
public:
    explicit RandomBlock(std::int64_t bytes)
        : bytes_(bytes),
          memory_(static_cast<std::byte*>(std::aligned_alloc(alignment, static_cast<std::size_t>(bytes)))) {
        if (::getrandom(&state_, sizeof state_, 0) != sizeof state_)
            state_ = reinterpret_cast<std::uintptr_t>(this) | 1;
        for (std::int64_t at = 0; memory_ != nullptr && at < bytes; at += 8) put(at, next());
    }
    ~RandomBlock() { std::free(memory_); }
    RandomBlock(const RandomBlock&) = delete;
    RandomBlock& operator=(const RandomBlock&) = delete;
    [[nodiscard]] bool ok() const { return memory_ != nullptr; }

    /// The first `bytes` of it, with something new in every 4 KiB.
    [[nodiscard]] const void* fresh(std::int64_t bytes) {
        for (std::int64_t at = 0; at < std::min(bytes, bytes_); at += alignment) put(at, next());
        return memory_;
    }

private:
    void put(std::int64_t at, std::uint64_t value) { std::memcpy(memory_ + at, &value, sizeof value); }
    /// splitmix64 (Steele, Lea, Flood 2014).
    std::uint64_t next() {
        std::uint64_t mixed = state_ += 0x9E3779B97F4A7C15U;
        mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
        mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
        return mixed ^ (mixed >> 31);
    }

    std::int64_t bytes_;
    std::byte* memory_;
    std::uint64_t state_ = 0;
};

/// The lock that keeps two probes of one directory apart.
class Lock {
public:
    Lock(const std::string& directory, std::int64_t most_ns, storage::ThrottleClock& clock) {
        descriptor_ = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (descriptor_ < 0) return;
        const std::int64_t give_up = clock.now_ns() + most_ns;
        while (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
            if (errno != EWOULDBLOCK && errno != EINTR) return;
            const std::int64_t now = clock.now_ns();
            if (now >= give_up) return;
            clock.sleep_until(now + lock_interval_ns);
        }
        held_ = true;
    }
    ~Lock() {
        if (descriptor_ >= 0) ::close(descriptor_);
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    [[nodiscard]] bool held() const { return held_; }

private:
    int descriptor_ = -1;
    bool held_ = false;
};

int write_all(int descriptor, const void* data, std::int64_t bytes, std::int64_t offset) {
    for (std::int64_t done = 0; done < bytes;) {
        const ssize_t moved = ::pwrite(descriptor, static_cast<const char*>(data) + done,
                                       static_cast<std::size_t>(bytes - done), offset + done);
        if (moved > 0) done += moved;
        if (moved == 0) return EIO;
        if (moved < 0 && errno != EINTR) return errno;
    }
    return 0;
}

/// The file to write to, past the page cache if that works.
storage::Opened open_file(storage::Targets& targets, std::int32_t target, bool& direct) {
    storage::Opened opened = targets.create_unnamed(target, O_WRONLY | O_DIRECT);
    direct = opened.error == 0;
    if (opened.error == EINVAL || opened.error == ENOTSUP) opened = targets.create_unnamed(target, O_WRONLY);
    return opened;
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// One repetition after the other into `result`; returns what went wrong.
std::string repeat(storage::Targets& targets, std::int32_t target, int descriptor, const Options& options,
                   storage::ThrottleClock& clock, Measured& result) {
    RandomBlock block(options.largest_write);
    if (!block.ok()) return "no memory for a block to write";
    const auto write = [&](std::int64_t bytes, std::int64_t offset) {
        if (const int error = write_all(descriptor, block.fresh(bytes), bytes, offset); error != 0) return error;
        if (!result.direct && ::fdatasync(descriptor) != 0) return errno;
        targets.pace(target, bytes, clock);
        return 0;
    };
    for (std::int32_t i = 0; i < options.repetitions; ++i) {
        const Window window = time_writes(write, clock, options);
        result.bytes += window.bytes;
        if (window.error != 0) return std::strerror(window.error);
        result.each.push_back(static_cast<double>(window.counted_bytes) * 1e9 / static_cast<double>(window.counted_ns));
    }
    return {};
}

/// A thread for each of these targets, `at_once` at a time.
std::vector<Measured> measure_some(storage::Targets& targets, const std::vector<std::int32_t>& wanted,
                                   const Options& options) {
    std::vector<Measured> results(wanted.size());
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        storage::MonotonicClock clock;
        for (std::size_t i = next++; i < results.size(); i = next++)
            results[i] = measure(targets, wanted[i], options, clock);
    };
    std::vector<std::thread> threads;
    const std::size_t count = std::min(results.size(), static_cast<std::size_t>(options.at_once));
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back(work);
    for (std::thread& thread : threads) thread.join();
    return results;
}

}  // namespace

std::optional<Error> check(const Options& options) {
    const auto wrong = [](const char* what, std::int64_t value, const char* remedy) {
        return Error{what, std::to_string(value), remedy};
    };
    if (options.window_ns < millisecond_ns || options.discard_ns < 0)
        return wrong("a window that nothing can be measured in", options.window_ns,
                     "a millisecond and more is measured");
    if (options.bytes != 0 && options.bytes < smallest_write)
        return wrong("a size that is too small to be measured", options.bytes,
                     "64 KiB at least, as the paper 16 MB and more");
    if (options.repetitions < 1 || options.repetitions > 1000)
        return wrong("a number of repetitions that makes no sense", options.repetitions, "1 to 1000");
    if (options.largest_write < smallest_write || options.largest_write % alignment != 0 ||
        options.largest_write > span)
        return wrong("a size of writes that cannot be used", options.largest_write,
                     "64 KiB to 256 MiB, a multiple of 4 KiB");
    if (options.confirmations < 0 || options.confirmations > 100)
        return wrong("a number of confirmations that makes no sense", options.confirmations, "0 to 100");
    if (options.at_once < 1) return wrong("no target at a time", options.at_once, "1 or more");
    return std::nullopt;
}

Window time_writes(Writer write, storage::ThrottleClock& clock, const Options& options) {
    Window window;
    std::int64_t bytes = options.bytes > 0 ? options.largest_write : smallest_write;
    std::int64_t offset = 0;
    const std::int64_t begin = clock.now_ns();
    std::int64_t counted_from = options.bytes > 0 ? begin : -1;  // the completion that ends what is discarded
    for (std::int64_t before = begin;;) {
        if (options.bytes > 0) {
            const std::int64_t left = options.bytes - window.bytes;
            bytes = std::min(bytes, (left + alignment - 1) / alignment * alignment);
        }
        if (offset + bytes > span) offset = 0;
        window.error = write(bytes, offset);
        if (window.error != 0) return window;
        // A clock that stood still still makes a rate.
        const std::int64_t now = std::max(clock.now_ns(), before + 1);
        offset += bytes;
        window.bytes += bytes;
        if (counted_from >= 0) {
            window.counted_bytes += bytes;
            window.counted_ns = now - counted_from;
            if (options.bytes > 0 ? window.bytes >= options.bytes : window.counted_ns >= options.window_ns)
                return window;
        } else if (now - begin >= options.discard_ns) {
            counted_from = now;
        }
        // Writes so long that what the clock and the scheduler add hardly counts, and so short that a window holds several.
        const std::int64_t took = now - before;
        if (options.bytes == 0 && took < options.window_ns / 16) bytes = std::min(bytes * 2, options.largest_write);
        if (options.bytes == 0 && took > options.window_ns / 4) bytes = std::max(bytes / 2, smallest_write);
        before = now;
    }
}

Measured measure(storage::Targets& targets, std::int32_t target, const Options& options,
                 storage::ThrottleClock& clock) {
    Measured result;
    const storage::Target& where = targets.list()[static_cast<std::size_t>(target)];
    const std::int64_t begin = clock.now_ns();
    result.problem = where.unusable;
    if (result.problem.empty()) {
        // Where all targets are one directory (Lustre, CephFS), its lock would put them one behind the other.
        const bool own = targets.list().size() == 1 || targets.abilities().directories;
        const std::int64_t most_ns =
            own ? patience * (options.discard_ns + options.window_ns) * options.repetitions : 0;
        const auto lock = own ? std::make_unique<Lock>(where.directory, most_ns, clock) : nullptr;
        result.alone = lock != nullptr && lock->held();
        result.token_bucket_rate = targets.rate(target);
        const storage::Opened file = open_file(targets, target, result.direct);
        if (file.error != 0) {
            result.problem = where.directory + ": " + std::strerror(file.error);
        } else {
            result.problem = repeat(targets, target, file.descriptor, options, clock, result);
            ::close(file.descriptor);
        }
    }
    if (result.problem.empty()) result.bytes_per_second = median(result.each);
    result.elapsed_ns = clock.now_ns() - begin;
    return result;
}

std::vector<std::int32_t> doubtful(const std::vector<Measured>& all, const Selection& selection) {
    std::vector<std::int32_t> again;
    for (std::size_t i = selection.chosen; i < selection.curve.size(); ++i) {
        const std::int32_t target = selection.curve[i].target;
        if (!all[static_cast<std::size_t>(target)].confirmed) again.push_back(target);
    }
    return again;
}

void add(Measured& known, const Measured& again) {
    const double better = std::max(known.bytes_per_second, again.bytes_per_second);
    known.confirmed = std::abs(known.bytes_per_second - again.bytes_per_second) <= better / 4;
    known.bytes_per_second = better;
    known.each.insert(known.each.end(), again.each.begin(), again.each.end());
    known.bytes += again.bytes;
    known.elapsed_ns += again.elapsed_ns;
    known.direct = known.direct && again.direct;
    known.alone = known.alone && again.alone;
    if (known.problem.empty()) known.problem = again.problem;
    if (!known.problem.empty()) known.bytes_per_second = 0;
}

std::vector<Measured> probe_all(storage::Targets& targets, const Options& options, double threshold) {
    std::vector<std::int32_t> wanted(targets.list().size());
    std::iota(wanted.begin(), wanted.end(), 0);
    std::vector<Measured> all = measure_some(targets, wanted, options);
    for (std::int32_t round = 0; round < options.confirmations; ++round) {
        const auto selection = select(rates_of(all), threshold);
        if (!selection) break;  // none can be used: their problems say why
        wanted = doubtful(all, selection.value());
        const std::vector<Measured> again = measure_some(targets, wanted, options);
        for (std::size_t i = 0; i < wanted.size(); ++i) add(all[static_cast<std::size_t>(wanted[i])], again[i]);
    }
    return all;
}

std::vector<double> rates_of(const std::vector<Measured>& all) {
    std::vector<double> rates;
    for (const Measured& one : all) rates.push_back(one.bytes_per_second);
    return rates;
}

}  // namespace ioweir::probe
