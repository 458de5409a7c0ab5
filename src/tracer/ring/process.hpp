// The tracer of this process: the one Tracer instance, its thread streams and file ids.
// What does not live here: descriptors (ring/descriptors.hpp), hooks (tracer/hooks), the choice to trace at all (preload).
#pragma once

#include <sys/types.h>

#include <cerrno>
#include <cstdint>

#include "tracer/ring/descriptors.hpp"
#include "tracer/ring/limits.hpp"
#include "tracer/ring/stream.hpp"

namespace ioweir::tracer {

/// The preload's one instance; hooks test `active` and forward when it is false.
extern Tracer process_tracer;

/// The calling thread's stream. Initial-exec and constinit: no call, no allocation, no guard; legal because the preload
/// is loaded at start.
extern constinit thread_local ThreadStream thread_stream __attribute__((tls_model("initial-exec")));

/// What the hooks and the engine need also when nothing is traced.
void prepare();
/// What the user asked for.
struct Settings {
    const char* directory = nullptr;  ///< absolute
    std::uint32_t layers = all_layers;
    bool call_sites = false;
    void* (*find_function)(const char* name) = nullptr;  ///< as the whole program sees it; for call sites in Python
    const char* clock = nullptr;                         ///< where the run's clock is (ring/align.hpp); null: nowhere
    std::int64_t test_clock_skew_ns = 0;                 ///< added to CLOCK_REALTIME, in tests of the alignment

    Limits limits;
    const char* anonymise_key = nullptr;  ///< see ring/anonymise.hpp; null: paths are written as they are
};
/// Starts tracing. Creates no file before the first event.
void start(const Settings& settings);
/// In the child, as soon as there is one: fork may have been called by a signal handler that interrupted recording.
void begin_child();
/// exit() was called: everything recorded gets its end mark.
void stop();

/// Says `text` on standard error, with the process in front.
void say(const char* text, const char* detail, int error_number);
/// The same, but only the first time in this process: tracing suffers, and once is enough.
void complain(const char* text, const char* detail, int error_number);

/// Writes one meta record (see spec/records.toml), `text` behind it; false when there is no room. `record`: `bytes` of one
/// whose first fields, kind and size, are filled in here.
bool write_record(const void* record, std::size_t bytes, std::uint16_t kind, const void* text, std::size_t text_bytes);

/// When the node's clock was last aligned, shared by its processes; null while there is no trace file.
std::uint64_t* node_alignment();

/// A path as the trace may show it, in place: its name when paths are anonymised, else unchanged. Its length.
std::size_t shown_path(char* path, std::size_t length, std::size_t capacity);

/// Takes a fresh pair of clock samples into the thread's chunk: called where time does not matter (open, close).
void sample_clock(ThreadStream& stream);

/// False in a child of vfork: it shares our memory and has descriptors of its own. (One of fork has its own memory; until
/// its first event it does not know yet that it is another process.)
bool owns_descriptors();
/// Says once that a descriptor is too high to be followed.
void note_high_descriptor(int fd);

/// Restores errno when the hook ends: what the real call left there is the program's.
class KeepErrno {
public:
    KeepErrno() : saved_(errno) {}
    ~KeepErrno() { errno = saved_; }
    KeepErrno(const KeepErrno&) = delete;
    KeepErrno& operator=(const KeepErrno&) = delete;
    [[nodiscard]] int value() const { return saved_; }

private:
    int saved_;
};

}  // namespace ioweir::tracer
