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
    note_turns(engine, handle);
    const Totals& totals = handle.totals;
    if (totals.calls == 0 && totals.sizes_deferred == 0) return;
    if (engine.host.did != nullptr) engine.host.did(handle.path.c_str(), totals);
}

}  // namespace ioweir::engine
