// The tracer of this process: the one Tracer instance, its thread streams, file ids and descriptor table.
// What does not live here: hooks (tracer/hooks), the choice to trace at all (preload).
#pragma once

#include <sys/types.h>

#include <cstdint>

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
    const char* anonymise_key = nullptr;  ///< see ring/anonymise.hpp; null: paths are written as they are
};
/// Starts tracing. Creates no file before the first event.
void start(const Settings& settings);
/// exit() was called: everything recorded gets its end mark.
void stop();

/// Says `text` once on standard error, with the process in front.
void complain(const char* text, const char* detail, int error_number);

/// Writes one meta record (see spec/records.toml), `text` behind it; false when there is no room. `record`: `bytes` of one
/// whose first fields, kind and size, are filled in here.
bool write_record(const void* record, std::size_t bytes, std::uint16_t kind, const void* text, std::size_t text_bytes);

/// Files of the system are not the program's data. Stated in docs/explanation/tracing.md.
bool is_system_path(const char* path);

/// A path as the trace may show it, in place: its name when paths are anonymised, else unchanged. Its length.
std::size_t shown_path(char* path, std::size_t length, std::size_t capacity);

/// Takes a fresh pair of clock samples into the thread's chunk: called where time does not matter (open, close).
void sample_clock(ThreadStream& stream);

// -- descriptors: which file id an open descriptor stands for; 0: not traced ------------------------------------------
inline constexpr int descriptor_capacity = 1 << 20;
extern std::uint32_t descriptor_files[descriptor_capacity];

inline std::uint32_t file_of(int fd) {
    return static_cast<unsigned>(fd) < static_cast<unsigned>(descriptor_capacity)
               ? __atomic_load_n(&descriptor_files[fd], __ATOMIC_RELAXED)
               : 0;
}
/// Remembers (or with 0 forgets) the file of a descriptor.
void set_file(int fd, std::uint32_t file);
/// Forgets the files of the descriptors first .. last.
void forget_descriptors(unsigned first, unsigned last);

/// The engine's own descriptors: they are nobody else's reason to keep a file open. Kept also when nothing is traced.
extern std::uint64_t engine_descriptors[descriptor_capacity / 64];

inline bool is_engine_descriptor(int fd) {
    return static_cast<unsigned>(fd) < static_cast<unsigned>(descriptor_capacity) &&
           (__atomic_load_n(&engine_descriptors[fd / 64], __ATOMIC_RELAXED) >> (fd % 64) & 1U) != 0;
}
inline void mark_engine_descriptor(int fd, bool engines) {
    if (static_cast<unsigned>(fd) >= static_cast<unsigned>(descriptor_capacity)) return;
    const std::uint64_t bit = std::uint64_t{1} << (fd % 64);
    if (engines)
        __atomic_fetch_or(&engine_descriptors[fd / 64], bit, __ATOMIC_RELAXED);
    else if (is_engine_descriptor(fd))
        __atomic_fetch_and(&engine_descriptors[fd / 64], ~bit, __ATOMIC_RELAXED);
}

/// Absolute, without "." and doubled slashes; relative to `directory` (AT_FDCWD or a descriptor). False when it does not fit.
bool absolute_path(int directory, const char* path, char* out, std::size_t capacity);

}  // namespace ioweir::tracer
