#include "container/log_ahead.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace ioweir::container {

LogAhead::Log* LogAhead::find(std::int64_t source) {
    if (logs_[last_].source == source) return &logs_[last_];
    for (std::size_t i = 0; i < logs_.size(); ++i) {
        if (logs_[i].source != source) continue;
        last_ = i;
        return &logs_[i];
    }
    return nullptr;
}

void LogAhead::scatter(const std::byte* from, std::int64_t bytes, const iovec* pieces, int count) {
    for (int i = 0; i < count && bytes > 0; ++i) {
        const std::size_t some = std::min(pieces[i].iov_len, static_cast<std::size_t>(bytes));
        if (some == 0) continue;
        std::memcpy(pieces[i].iov_base, from, some);
        from += some;
        bytes -= static_cast<std::int64_t>(some);
    }
}

bool LogAhead::copy(std::int64_t source, std::int64_t place, std::int64_t bytes, const iovec* pieces, int count) {
    Log* const log = find(source);
    if (log == nullptr || place < log->begin || place - log->begin > std::ssize(log->bytes) - bytes) return false;
    scatter(log->bytes.data() + (place - log->begin), bytes, pieces, count);
    log->next = place + bytes;
    log->used = ++uses_;
    return true;
}

std::optional<LogAhead::Ask> LogAhead::ask(std::int64_t source, std::int64_t place, std::int64_t bytes,
                                           std::int64_t end) {
    Log* log = find(source);
    if (log == nullptr) {
        log = &*std::min_element(logs_.begin(), logs_.end(),
                                 [](const Log& one, const Log& other) { return one.used < other.used; });
        *log = {};
        log->source = source;
    }
    const bool follows = log->next >= 0 && place >= log->next && place - log->next <= largest_gap;
    log->in_order = follows ? log->in_order + 1 : 0;
    log->next = place + bytes;
    log->used = ++uses_;
    if (log->in_order < 2 || bytes > largest_piece || end <= place + bytes) return std::nullopt;
    // Twice as much each time that all of it was wanted.
    const auto wanted = std::clamp<std::int64_t>(2 * std::ssize(log->bytes), std::max(first_bytes, bytes), most_bytes);
    Ask ask{source, place, std::move(log->bytes), changes_};
    log->bytes.clear();
    ask.bytes.resize(static_cast<std::size_t>(std::min(wanted, end - place)));
    return ask;
}

void LogAhead::keep(Ask ask) {
    Log* const log = find(ask.source);
    if (log == nullptr || ask.changes != changes_) return;
    log->begin = ask.place;
    log->bytes = std::move(ask.bytes);
}

void LogAhead::forget() {
    ++changes_;
    for (Log& log : logs_) log.bytes.clear();
}

void LogAhead::forget(std::int64_t source, std::int64_t place, std::int64_t bytes) {
    ++changes_;
    Log* const log = find(source);
    if (log != nullptr && place < log->begin + std::ssize(log->bytes) && place + bytes > log->begin) log->bytes.clear();
}

}  // namespace ioweir::container
