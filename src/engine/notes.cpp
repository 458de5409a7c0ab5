#include <cstdio>
#include <string>

#include "base/standard_error.hpp"
#include "engine/parts.hpp"

namespace ioweir::engine {

void note(const Engine& engine, format::NoteCode code, const std::string& path, std::int64_t value,
          const std::string& text) {
    if (engine.host.note != nullptr) engine.host.note(code, path.c_str(), value, text.c_str());
}

void complain(const Engine& engine, const std::string& path, const std::string& text) {
    const bool names_it = text.find(path) != std::string::npos;
    say_line("ioweir: " + (names_it ? text : path + ": " + text) + "\n");
    note(engine, format::NoteCode::message, path, 0, text);
}

/// Each process speaks for itself: reports add up.
void note_end(const Engine& engine, Handle& handle) {
    for (const PassedThrough::Entry& entry : handle.passed.take()) {
        note(engine, format::NoteCode::passed_through, handle.path, entry.calls, entry.reason);
    }
    const Totals& totals = handle.totals;
    if (totals.calls == 0 && totals.sizes_deferred == 0) return;
    char text[560];
    int length = std::snprintf(
        text, sizeof text, "calls %lld, read %lld bytes, wrote %lld bytes, storage operations %lld, elapsed %lld ns",
        static_cast<long long>(totals.calls), static_cast<long long>(totals.bytes_read),
        static_cast<long long>(totals.bytes_written), static_cast<long long>(totals.operations),
        static_cast<long long>(totals.elapsed_ns));
    if (totals.exchanges > 0) {
        std::snprintf(text + length, sizeof text - static_cast<std::size_t>(length),
                      "; exchanges %lld, rounds %lld, exchange %lld ns, storage %lld ns, messages %lld, sent %lld "
                      "bytes, in subgroups %lld, exchange processor %lld ns",
                      static_cast<long long>(totals.exchanges), static_cast<long long>(totals.rounds),
                      static_cast<long long>(totals.exchange_ns), static_cast<long long>(totals.storage_ns),
                      static_cast<long long>(totals.messages), static_cast<long long>(totals.sent_bytes),
                      static_cast<long long>(totals.in_subgroups),
                      static_cast<long long>(totals.exchange_processor_ns));
    }
    std::string more;
    if (totals.each_alone > 0) more = "; each rank alone by choice " + std::to_string(totals.each_alone);
    if (totals.sizes_deferred > 0) {
        more += "; set_size deferred " + std::to_string(totals.sizes_deferred) + ", file grown " +
                std::to_string(totals.sizes_grown);
    }
    if (totals.handed_bytes > 0 || totals.too_large > 0) {
        more += "; handed over " + std::to_string(totals.handed_bytes) + " bytes, handing over " +
                std::to_string(totals.hand_ns) + " ns, waits for room " + std::to_string(totals.room_waits) +
                ", waited " + std::to_string(totals.room_wait_ns) + " ns, writer " + std::to_string(totals.writer_ns) +
                " ns, calls too large " + std::to_string(totals.too_large);
    }
    note(engine, format::NoteCode::engine_summary, handle.path, totals.bytes_read + totals.bytes_written, text + more);
}

}  // namespace ioweir::engine
