// The engine: executes plans under MPI_File_* calls. It stands between whoever calls the table `hooks` and the real functions
// in `below`; a real MPI_File lies behind every handle, so that whatever the engine does not handle goes there unchanged.
// What does not live here: deciding on a strategy (planner), interposing (preload), tracing (tracer).
//
// Rules that keep a program safe:
// - Whether a file is the engine's is agreed once, collectively, in MPI_File_open; whether its view can be followed, in
//   MPI_File_set_view. What only one rank sees never makes ranks take different collective calls: that rank works alone.
// - No byte outside of the requested extents is written. Nothing needs another rank after a call has begun.
// - The engine's own descriptors are never closed while the program has the file open: that would drop the program's locks.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "exchange/step.hpp"
#include "ioweir_generated/mpi_file_calls.hpp"
#include "ioweir_generated/records.hpp"
#include "policy/plan_file.hpp"
#include "storage/backend.hpp"

namespace ioweir::engine {

using namespace exchange;  // what is moved, between whom, through which buffers

/// What verification found of this process's writes to a file through one handle, at its close; one for each outcome and reason.
struct VerifyFinding {
    format::VerifyOutcome outcome = format::VerifyOutcome::equal;
    std::int64_t calls = 0;  ///< 0: bytes of calls that are not told apart
    std::int64_t bytes = 0;
    std::int64_t offset = -1;  ///< of the first of them in the file; -1: unknown
    const char* path = "";
    const char* text = "";  ///< why
};

/// Of one handle; its threads count together.
using Totals = format::EngineFigures<std::atomic<std::int64_t>>;

/// Services of whoever hosts the engine; any may be null.
struct Host {
    /// For tests: every step of this rank in an exchange.
    void (*step)(const exchange::Step& step) = nullptr;
    /// Bracket the engine's own file operations, on the thread that does them.
    void (*enter_storage)() = nullptr;
    void (*leave_storage)() = nullptr;
    /// The C library's pwrite() and pread(), bracketed so. Without them, and without brackets, the C library's own.
    ssize_t (*write_storage)(int descriptor, const void* data, std::size_t bytes, off_t offset) = nullptr;
    ssize_t (*read_storage)(int descriptor, void* data, std::size_t bytes, off_t offset) = nullptr;
    /// Calls body(argument), on a thread of the engine that does nothing but file operations.
    void (*run_storage_thread)(void (*body)(void*), void* argument) = nullptr;
    /// Something a report must say.
    void (*note)(format::NoteCode code, const char* path, std::int64_t value, const char* text) = nullptr;
    /// What it did with a file through one handle, which is being closed.
    void (*did)(const char* path, const Totals& totals) = nullptr;
    /// What became of one kind of its calls under `auto`, when it is closed.
    void (*weighed)(const char* path, format::CallKind kind, format::Chosen chosen,
                    const format::WeighedFigures<std::int64_t>& figures) = nullptr;
    /// By whom a file of a loop was moved: see ChosenRecord.
    void (*chosen)(const char* series, const char* words, format::ChoiceStep step, std::uint32_t ranks,
                   const format::ChosenFigures<std::int64_t>& figures) = nullptr;
    /// With Options::verify.
    void (*verified)(const VerifyFinding& finding) = nullptr;
    /// From now on before_path() must be called, or need not be any more. Without it only MPI calls drain what is written behind.
    void (*watch_paths)(bool watch) = nullptr;
    /// Has the program itself (or its MPI library) this file open? Without it the engine takes the answer to be no.
    bool (*program_has_open)(std::uint64_t device, std::uint64_t inode) = nullptr;
    /// Changes when a descriptor that the engine has opened is closed, or may stand for something else. Without it the kernel is asked in
    /// each call.
    const std::uint32_t* descriptors_gone = nullptr;
};

/// How the comparison of the engine with the MPI library goes about calls that take long and are fast all the same: there is little to win, and
/// much to lose where the library takes several times as long.
struct TrialPace {
    std::int64_t long_call_ns = 100'000;   ///< of shorter calls a whole trial takes milliseconds
    std::int64_t fast_bytes_per_us = 128;  ///< moved by the rank with most: memory, not storage, is what takes the time
    std::int64_t before = 62;  ///< calls by the engine before the first trial, and the two that it makes anyway
    std::int64_t before_crowded =
        254;  ///< ... where ranks share processors, and may wait for one in each of the library's messages
    /// Collective calls before the engine's call is looked at, where ranks share processors: to meet for it may take a processor's time slice,
    /// which is half of a call that is in memory.
    std::int64_t before_look_crowded = 15;
    std::int64_t between = 14;  ///< calls between two pairs: one in 16 is tried
};

struct Options {
    policy::PlanFile plan;
    bool verify = false;                  ///< check after close that files hold what the program passed in
    storage::Backend* backend = nullptr;  ///< must outlive the engine; null: POSIX
    std::uint64_t seed = 0;               ///< of the order in which writers are tried; the same on all ranks
    bool weighs = false;                  ///< under `auto`, calls that the MPI library is faster at are left to it
    TrialPace trial_pace{};               ///< ... and how its trials are spread
};

/// Replaces in `hooks` what the engine handles; `below` must hold the real functions. Once a process; a further call (another
/// table with the same real functions) only fills in its `hooks`. Not thread safe.
void install(const mpi::FileCalls& below, mpi::FileCalls& hooks, Options options, Host host);

/// To be called before the program opens, changes or asks about a file by name, relative to a directory's descriptor or AT_FDCWD: waits
/// until what was handed over for it is written. Not by the engine's own threads and calls. Leaves errno as it likes.
void before_path(int directory, const char* path);

/// When every rank ends MPI, which must still be usable: says what is still to be said about files that were never closed, and frees
/// the engine's communicators.
void shut_down();

}  // namespace ioweir::engine
