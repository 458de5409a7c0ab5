// Reads the plan, makes the storage backend, and puts the engine between the tracer's wrappers and the MPI library.
#include "preload/engine_host.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/raw_syscall.hpp"
#include "base/standard_error.hpp"
#include "engine/engine.hpp"
#include "exchange/delivery.hpp"
#include "ioweir_generated/records.hpp"
#include "mpi/mpi.hpp"
#include "policy/plan_file.hpp"
#include "preload/all_here.hpp"
#include "storage/fault.hpp"
#include "storage/paced.hpp"
#include "storage/posix.hpp"
#include "storage/targets.hpp"
#include "storage/throttle.hpp"

namespace ioweir::preload {
namespace {

tracer::Tracer* process_tracer = nullptr;
bool installed = false;

/// The engine's file operations go through the same POSIX hooks as everybody's; this marks them as its own.
/// Calls come in pairs on one thread, not nested.
thread_local int saved_depth = 0;

void enter_storage() {
    tracer::ThreadStream& stream = *process_tracer->thread();
    saved_depth = stream.depth;
    const int top = stream.depth < tracer::ThreadStream::max_depth ? stream.depth : tracer::ThreadStream::max_depth;
    if (top > 0) stream.frames[top - 1].origin = format::Origin::engine;
}

void leave_storage() {
    tracer::ThreadStream& stream = *process_tracer->thread();
    const int top = saved_depth < tracer::ThreadStream::max_depth ? saved_depth : tracer::ThreadStream::max_depth;
    if (top > 0) stream.frames[top - 1].origin = format::Origin::mpi_library;
}

/// The frame of the MPI-IO call that the engine is in: what is called inside of it meanwhile is the engine's.
class EnginesCalls {
public:
    EnginesCalls() {
        tracer::ThreadStream& stream = *process_tracer->thread();
        const int top = stream.depth < tracer::ThreadStream::max_depth ? stream.depth : tracer::ThreadStream::max_depth;
        if (top == 0) return;
        frame_ = &stream.frames[top - 1];
        frame_->origin = format::Origin::engine;
    }
    ~EnginesCalls() {
        if (frame_ != nullptr) frame_->origin = format::Origin::mpi_library;
    }
    EnginesCalls(const EnginesCalls&) = delete;
    EnginesCalls& operator=(const EnginesCalls&) = delete;

private:
    tracer::Frame* frame_ = nullptr;
};

ssize_t write_storage(int descriptor, const void* data, std::size_t bytes, off_t offset) {
    const EnginesCalls scope;
    return ::pwrite(descriptor, data, bytes, offset);
}

ssize_t read_storage(int descriptor, void* data, std::size_t bytes, off_t offset) {
    const EnginesCalls scope;
    return ::pread(descriptor, data, bytes, offset);
}

/// Everything on this thread is the engine's.
void run_storage_thread(void (*body)(void*), void* argument) {
    const tracer::Scope scope(*process_tracer->thread(), tracer::Layer::engine, 0);
    body(argument);
}

void before_path(int directory, const char* path) {
    const int error = errno;
    thread_local bool inside = false;
    tracer::ThreadStream& stream = *process_tracer->thread();
    const bool engines = tracer::context_of(stream, __builtin_frame_address(0)).origin == format::Origin::engine;
    if (!inside && !engines && path != nullptr) {
        inside = true;
        engine::before_path(directory, path);
        inside = false;
    }
    errno = error;
}

void watch_paths(bool watch) {
    __atomic_store_n(&process_tracer->before_path, watch ? before_path : nullptr, __ATOMIC_RELEASE);
}

void note(format::NoteCode code, const char* path, std::int64_t value, const char* text) {
    if (process_tracer->active) process_tracer->note(static_cast<std::uint32_t>(code), path, value, text);
}

void did(const char* path, const engine::Totals& totals) {
    if (process_tracer->active) process_tracer->did(path, format::EngineFigures<std::int64_t>::of(totals));
}

void weighed(const char* path, format::CallKind call, format::Chosen chosen,
             const format::WeighedFigures<std::int64_t>& figures) {
    if (process_tracer->active) process_tracer->weighed(path, call, chosen, figures);
}

void chosen(const char* series, const char* words, format::ChoiceStep step, std::uint32_t ranks,
            const format::ChosenFigures<std::int64_t>& figures) {
    if (process_tracer->active) process_tracer->chosen(series, words, step, ranks, figures);
}

void verified(const engine::VerifyFinding& finding) {
    if (process_tracer->active)
        process_tracer->verdict({static_cast<std::uint32_t>(finding.outcome), finding.calls, finding.bytes,
                                 finding.offset, finding.path, finding.text});
}

bool program_has_open(std::uint64_t device, std::uint64_t inode) {
    return process_tracer->has_open != nullptr && process_tracer->has_open(device, inode);
}

void refuse(const char* path, const std::string& why, int rank) {
    if (rank == 0) say_line("ioweir: the plan is not applied: " + why + "; the program goes on without it\n");
    note(format::NoteCode::disabled, path, 0, ("the plan is not applied: " + why).c_str());
}

/// The text of the file, or an Error.
Result<std::string> read_file(const char* path) {
    const int fd = raw::openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return Error{"cannot open the plan file", path, std::strerror(errno)};
    std::string text;
    char buffer[4096];
    ssize_t length = 0;
    while ((length = raw::read(fd, buffer, sizeof buffer)) > 0) text.append(buffer, static_cast<std::size_t>(length));
    const int error = errno;
    raw::close(fd);
    if (length < 0) return Error{"cannot read the plan file", path, std::strerror(error)};
    return text;
}

/// Rank 0 reads, so that a large job does not open one small file from every rank, and every rank has the same text.
/// Without MPI_COMM_WORLD (sessions) each process reads for itself.
Result<std::string> plan_text(const char* path, bool world) {
    if (!world) return read_file(path);
    int rank = 0;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    Result<std::string> text = rank == 0 ? read_file(path) : Result<std::string>(std::string());
    // Behind a mark that says which it is.
    std::string payload = text ? "+" + text.value() : "-" + text.error().message();
    if (!exchange::broadcast(MPI_COMM_WORLD, payload))
        return Error{"cannot distribute the plan file", path, "the broadcast failed"};
    if (payload.front() == '-') return Error{payload.substr(1), "", ""};
    return payload.substr(1);
}

/// The token buckets of the targets at a path above `below`.
storage::Backend* paced(storage::Backend& below, const std::string& path, std::string& problem) {
    auto targets = storage::find_targets(path);
    if (!targets) {
        problem = "IOWEIR_TEST_THROTTLE: " + targets.error().message();
        return nullptr;
    }
    static storage::MonotonicClock clock;
    note(format::NoteCode::message, "", 0, storage::describe_rates(*targets.value()).c_str());
    static storage::PacedBackend backend(below, targets.take(), clock);
    return &backend;
}

/// Slow targets above `below`, or `below` where none are asked for. Lives as long as the process; said in the trace, for figures that
/// are measured on it mean nothing else.
storage::Backend* throttled(storage::Backend& below, std::string& problem) {
    const char* text = std::getenv("IOWEIR_TEST_THROTTLE");
    if (text == nullptr || text[0] == '\0') return &below;
    constexpr std::string_view of_manifest = "targets=";
    if (std::string_view(text).starts_with(of_manifest)) return paced(below, text + of_manifest.size(), problem);
    const Result<storage::Throttle> parsed = storage::parse_throttle(text);
    if (!parsed) {
        problem = "IOWEIR_TEST_THROTTLE: " + parsed.error().message();
        return nullptr;
    }
    auto opened = storage::TargetQueues::open(parsed.value().state, parsed.value().rates.size());
    if (!opened) {
        problem = "IOWEIR_TEST_THROTTLE: " + opened.error().message();
        return nullptr;
    }
    static storage::MonotonicClock clock;
    static storage::TargetQueues& queues = *opened.take().release();
    static storage::ThrottledBackend backend(below, parsed.value(), queues, clock);
    note(format::NoteCode::message, "", 0, storage::describe(parsed.value()).c_str());
    return &backend;
}

/// The POSIX backend; in tests, one that is slow or makes chosen writes go wrong. Lives as long as the process.
storage::Backend* make_backend(std::string& problem) {
    static storage::PosixBackend posix;
    storage::Backend* below = throttled(posix, problem);
    const char* fault = std::getenv("IOWEIR_TEST_STORAGE");
    if (below == nullptr || fault == nullptr || fault[0] == '\0') return below;
    const Result<storage::Fault> parsed = storage::parse_fault(fault);
    if (!parsed) {
        problem = "IOWEIR_TEST_STORAGE: " + parsed.error().message();
        return nullptr;
    }
    static storage::FaultBackend faulty(*below, parsed.value());
    return &faulty;
}

}  // namespace

void install_engine(const Services& services, tracer::MpiTables& tables) {
    process_tracer = services.tracer;
    int rank = 0;
    if (services.world) {
        wait_until_all_are_here([](const std::string& text) { note(format::NoteCode::message, "", 0, text.c_str()); });
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    const Result<std::string> text = plan_text(services.plan_path, services.world);
    if (!text) return refuse(services.plan_path, text.error().message(), rank);
    Result<policy::PlanFile> plan = policy::parse_plan_file(text.value(), services.plan_path);
    if (!plan) return refuse(services.plan_path, plan.error().message(), rank);
    std::string problem;
    storage::Backend* backend = make_backend(problem);
    if (backend == nullptr) return refuse(services.plan_path, problem, rank);

    install_netcdf(services, plan.value());
    install_hdf5(services, plan.value());
    engine::Options options;
    options.plan = policy::with_subfile_rules(plan.take());
    options.verify = services.verify;
    const char* const weighs = std::getenv("IOWEIR_WEIGH");
    options.weighs = weighs == nullptr || std::strcmp(weighs, "0") != 0;
    const char* const seed = std::getenv("IOWEIR_CHOOSE_SEED");
    if (seed != nullptr) options.seed = std::strtoull(seed, nullptr, 10);
    options.backend = backend;
    engine::Host host;
    host.enter_storage = enter_storage;
    host.leave_storage = leave_storage;
    host.write_storage = write_storage;
    host.read_storage = read_storage;
    host.run_storage_thread = run_storage_thread;
    host.note = note;
    host.did = did;
    host.weighed = weighed;
    host.chosen = chosen;
    host.verified = verified;
    host.watch_paths = watch_paths;
    host.program_has_open = program_has_open;
    host.descriptors_gone = process_tracer->engine_descriptors_gone;
    mpi::FileCalls hooks = tables.below_mpi;
    engine::install(tables.below_mpi, hooks, std::move(options), host);
    // What comes in as PMPI_X goes to the same engine, which passes on to what lies below MPI_X.
    tables.next_mpi = hooks;
    tables.next_pmpi = hooks;
    process_tracer->has_engine = true;
    installed = true;
}

void shut_down_engine() {
    if (installed) engine::shut_down();
}

}  // namespace ioweir::preload
