#include "storage/throttle.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "base/guarded_files.hpp"
#include "base/nearest_name.hpp"
#include "base/size_text.hpp"

namespace ioweir::storage {
namespace {

constexpr std::int64_t second_ns = 1'000'000'000;
/// No work takes longer, and no queue reaches further ahead.
constexpr std::int64_t day_ns = 24 * 3600 * second_ns;

/// Calls visit(part) for the parts of `text` between separators; empty parts are left out.
template <typename Visit>
void split(std::string_view text, char separator, Visit visit) {
    while (!text.empty()) {
        const auto end = std::min(text.find(separator), text.size());
        if (end > 0) visit(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

layout::StripeLayout layout_of(const Throttle& throttle) {
    std::vector<std::int32_t> targets(throttle.rates.size());
    std::iota(targets.begin(), targets.end(), 0);
    return layout::StripeLayout::make(throttle.stripe_bytes, std::move(targets)).take();
}

}  // namespace

Result<Throttle> parse_throttle(std::string_view text) {
    const std::string remedy = "write stripe=1MiB rates=25MB,25MB state=/dev/shm/NAME: a rate a second for each target";
    constexpr std::string_view known[] = {"stripe", "rates", "state"};
    Throttle throttle;
    std::optional<Error> wrong;
    const auto size = [&](std::string_view value) -> std::int64_t {
        const auto parsed = parse_size(value);
        if (parsed && parsed.value() > 0) return parsed.value();
        if (!wrong)
            wrong = parsed ? Error{"a size of nothing in a throttle", std::string(value), remedy} : parsed.error();
        return 1;
    };
    split(text, ' ', [&](std::string_view word) {
        const auto equals = std::min(word.find('='), word.size());
        const std::string_view name = word.substr(0, equals);
        const std::string_view value = word.substr(std::min(equals + 1, word.size()));
        if (name == "stripe") {
            throttle.stripe_bytes = size(value);
        } else if (name == "rates") {
            split(value, ',', [&](std::string_view rate) { throttle.rates.push_back(size(rate)); });
        } else if (name == "state") {
            throttle.state = value;
        } else if (!wrong) {
            wrong = Error{"unknown word in a throttle", "'" + std::string(name) + "'", name_remedy(name, known)};
        }
    });
    if (wrong) return *wrong;
    if (throttle.stripe_bytes == 0 || throttle.rates.empty() || throttle.state.empty()) {
        return Error{"a throttle needs stripe, rates and state", "'" + std::string(text) + "'", remedy};
    }
    return throttle;
}

std::string describe(const Throttle& throttle) {
    const auto& rates = throttle.rates;
    std::string text =
        "throttled storage: " + std::to_string(rates.size()) + (rates.size() == 1 ? " target" : " targets") + " of ";
    const bool equal = std::adjacent_find(rates.begin(), rates.end(), std::not_equal_to<>()) == rates.end();
    for (std::size_t i = 0; i < (equal ? 1 : rates.size()); ++i) {
        if (i > 0) text += i + 1 == rates.size() ? " and " : ", ";
        text += rough_size_text(rates[i]);
    }
    return text + " a second, stripes of " + exact_size_text(throttle.stripe_bytes);
}

std::int64_t MonotonicClock::now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * second_ns + now.tv_nsec;
}

void MonotonicClock::sleep_until(std::int64_t time_ns) {
    const timespec until{time_ns / second_ns, time_ns % second_ns};
    while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
}

Result<std::unique_ptr<TargetQueues>> TargetQueues::open(const std::string& path, std::size_t targets, uid_t owner) {
    const auto failed = [&](const char* what) {
        return Error{std::string("the throttle's state cannot be ") + what, path + ": " + std::strerror(errno),
                     "name a new file in a directory in memory, such as /dev/shm"};
    };
    auto folder = guarded::Folder::follow(guarded::folder_name_of(path));
    const auto refused = [](const Error& why) {
        return Error{"the throttle's state cannot be opened", why.what + ": " + why.value, why.remedy, why.number};
    };
    if (!folder) return refused(folder.error());
    const bool own = owner == ::geteuid();
    // Of the folder's owner, of whom /dev/shm or the like is, nothing is to be believed here.
    folder.value().believe({.folder = owner, .group = 0, .group_writes = false, .user = owner});
    auto opened = folder.value().file(guarded::file_name_of(path), own ? O_RDWR | O_CREAT : O_RDWR, 0600);
    if (!opened) return refused(opened.error());
    const struct stat& judged = opened.value().status();
    if (judged.st_uid != owner || judged.st_nlink != 1)
        return guarded::cannot_use(
            path, EPERM, judged.st_uid != owner ? guarded::Fault::other_owner : guarded::Fault::other_names, &judged);
    const int fd = opened.value().descriptor();
    const auto bytes = static_cast<off_t>(targets * sizeof(Queue));
    struct stat info{};
    // Zeros are idle queues, and every process gives the file the same size: whoever comes first, nothing has to be agreed on.
    if (::fstat(fd, &info) != 0 || (info.st_size == 0 && ::ftruncate(fd, bytes) != 0)) return failed("made");
    if (info.st_size != 0 && info.st_size != bytes)
        return Error{"the throttle's state is of another number of targets", path, "name a new file for each run"};
    void* address = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) return failed("mapped");
    return std::unique_ptr<TargetQueues>(new TargetQueues({static_cast<Queue*>(address), targets}));
}

TargetQueues::~TargetQueues() { ::munmap(queues_.data(), queues_.size_bytes()); }

std::int64_t TargetQueues::append(std::size_t target, std::int64_t now_ns, std::int64_t duration_ns) {
    std::atomic<std::int64_t>& free_at = queues_[target].free_at_ns;
    std::int64_t before = free_at.load(std::memory_order_relaxed);
    const std::int64_t duration = std::clamp<std::int64_t>(duration_ns, 0, day_ns);
    std::int64_t done = 0;
    do {
        // The file says anything: it may be damaged, or of a clock that was another before the machine was started anew.
        const bool is_queue = before > now_ns && before - day_ns <= now_ns;
        done = (is_queue ? before : now_ns) + duration;
    } while (!free_at.compare_exchange_weak(before, done, std::memory_order_relaxed));
    return done;
}

std::int64_t TargetQueues::rate(std::size_t target, std::int64_t otherwise) const {
    const std::int64_t shared = queues_[target].rate.load(std::memory_order_relaxed);
    return shared > 0 ? shared : otherwise;
}

void TargetQueues::set_rate(std::size_t target, std::int64_t bytes_per_second) {
    queues_[target].rate.store(bytes_per_second, std::memory_order_relaxed);
}

std::int64_t TargetQueues::append_bytes(std::size_t target, std::int64_t now_ns, std::int64_t bytes,
                                        std::int64_t otherwise) {
    // 1 MiB at 25 MB/s: 41,943,040 ns.
    const long double duration =
        static_cast<long double>(bytes) * second_ns / static_cast<long double>(rate(target, otherwise));
    return append(target, now_ns, static_cast<std::int64_t>(std::min<long double>(duration, day_ns)));
}

ThrottledBackend::ThrottledBackend(Backend& below, const Throttle& throttle, TargetQueues& queues, ThrottleClock& clock)
    : below_(below), layout_(layout_of(throttle)), rates_(throttle.rates), queues_(queues), clock_(clock) {}

std::int64_t ThrottledBackend::wait_for(std::int64_t offset, std::int64_t moved) {
    if (moved <= 0) return moved;
    const std::vector<std::int64_t> bytes = layout_.bytes_on_targets({offset, moved});
    const std::int64_t now = clock_.now_ns();
    std::int64_t done = now;
    for (std::size_t target = 0; target < bytes.size(); ++target) {
        if (bytes[target] == 0) continue;
        done = std::max(done, queues_.append_bytes(target, now, bytes[target], rates_[target]));
    }
    clock_.sleep_until(done);
    return moved;
}

Opened ThrottledBackend::attempt_open(const char* path, int flags, mode_t mode) {
    return below_.attempt_open(path, flags, mode);
}

int ThrottledBackend::attempt_close(int descriptor) { return below_.attempt_close(descriptor); }

std::int64_t ThrottledBackend::attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) {
    return wait_for(offset, below_.attempt_write(descriptor, pieces, count, offset));
}

std::int64_t ThrottledBackend::attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) {
    return wait_for(offset, below_.attempt_read(descriptor, pieces, count, offset));
}

}  // namespace ioweir::storage
