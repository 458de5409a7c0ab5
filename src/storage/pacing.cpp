#include "storage/pacing.hpp"

#include <fcntl.h>

#include <algorithm>

namespace ioweir::storage {

void Flushes::begin(Backend& backend, int descriptor, layout::Extent bytes, Moment begun) {
    backend.begin_flush(descriptor, bytes.length, bytes.offset);
    note(bytes, begun);
}

void Flushes::note(layout::Extent bytes, Moment begun) {
    begun_.push_back({bytes, begun});
    bytes_ += bytes.length;
}

Flushes::Waited Flushes::wait(Backend& backend, int descriptor, std::size_t count, bool counts) {
    if (count == 0) return {};
    Waited waited;
    std::int64_t bytes = 0;
    const Moment begun = oldest(), started = now();
    const auto end = begun_.begin() + static_cast<std::ptrdiff_t>(count);
    for (auto flush = begun_.begin(); flush != end; ++flush) {
        bytes += flush->bytes.length;
        if (waited.error == 0) waited.error = backend.flush_at(descriptor, flush->bytes.length, flush->bytes.offset);
    }
    begun_.erase(begun_.begin(), end);
    bytes_ -= bytes;
    waited.ns = add_time(bytes, begun, started, now(), counts);
    return waited;
}

Flushes::Waited Flushes::keep_near(Backend& backend, int descriptor) {
    constexpr double least = 2 << 20, unknown = 4 << 20, most = 64 << 20, ahead_ns = 200e6;
    Waited all;
    while (all.error == 0) {
        const double near = ns_a_byte_ > 0 ? std::clamp(ahead_ns / ns_a_byte_, least, most) : unknown;
        if (static_cast<double>(bytes_) <= near) break;
        const Waited one = wait(backend, descriptor, 1);
        all = {one.error, all.ns + one.ns};
    }
    return all;
}

std::int64_t Flushes::add_waited(layout::Extent bytes, Moment started, Moment ended, bool counts) {
    Moment begun = started;
    std::erase_if(begun_, [&](const Flush& flush) {
        if (flush.bytes.offset != bytes.offset) return false;
        begun = flush.begun;  // of the last one that begins there
        bytes_ -= flush.bytes.length;
        return true;
    });
    return add_time(bytes.length, begun, started, ended, counts);
}

std::int64_t Flushes::add_time(std::int64_t bytes, Moment begun, Moment started, Moment ended, bool counts) {
    constexpr std::chrono::microseconds no_wait(100);
    const std::int64_t ns = ns_between(std::max(begun, ended_), ended);
    if (counts || ended - started >= no_wait || begun == started) {
        ended_ = ended;
        usual_ns_ = ns;
        ns_a_byte_ = static_cast<double>(ns) / static_cast<double>(bytes);
    } else if (ns_a_byte_ > 0) {
        return std::min(ns, static_cast<std::int64_t>(ns_a_byte_ * static_cast<double>(bytes)));
    }
    return ns;
}

void Flushes::forget() {
    begun_.clear();
    bytes_ = 0;
}

void Flushes::leave() {
    forget();
    ended_ = {};
    usual_ns_ = 0;
    ns_a_byte_ = 0;
}

void begin_flush_of_file(int descriptor) { (void)::sync_file_range(descriptor, 0, 0, SYNC_FILE_RANGE_WRITE); }

std::int64_t sync_ns(Moment begun, Moment started, Moment ended) {
    constexpr std::chrono::milliseconds no_wait(1);
    return ended - started > no_wait ? ns_between(begun, ended) : 0;
}

}  // namespace ioweir::storage
