// Starts the tracer, and the back end of the program's MPI library when MPI is initialised.
// Free of MPI: the preload gets into shells, launchers and whatever else a job runs, and does nothing there. The same file
// is compiled into libioweir_trace.a (linked/).
// What does not live here: hooks (tracer/hooks, ioweir_generated/trampolines.S), where the back end comes from
// (back_end_loader.cpp), MPI (back_end.cpp).
#include <errno.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/standard_error.hpp"
#include "preload/back_end_loader.hpp"
#include "preload/library_symbols.hpp"
#include "preload/named_files.hpp"
#include "preload/real_symbols.hpp"
#include "preload/services.hpp"
#include "preload/unwinder.hpp"
#include "preload/weak_references.hpp"
#include "tracer/hooks/posix_bodies.hpp"
#include "tracer/hooks/real.hpp"
#include "tracer/ring/align.hpp"
#include "tracer/ring/process.hpp"

#define IOWEIR_EXPORT __attribute__((visibility("default")))

extern "C" {
extern void* ioweir_slots[] __attribute__((visibility("hidden")));
}

namespace ioweir::tracer {
void* find_behind_hook(const char* name) { return preload::find_next(name); }
void* find_program_object(const char* name) { return preload::find_program_object(name); }
}  // namespace ioweir::tracer

namespace ioweir::preload {
namespace {

bool enabled = false;
char trace_directory[4096];
char plan_path[4096];
char clock[512];
bool verify = false;

/// Programs that start ranks but are none: the preload may reach them through a script's environment.
bool is_launcher(const char* name) {
    static constexpr const char* launchers[] = {"mpirun",
                                                "mpiexec",
                                                "orterun",
                                                "orted",
                                                "prterun",
                                                "prte",
                                                "prted",
                                                "mpirun.openmpi",
                                                "mpiexec.openmpi",
                                                "mpirun.mpich",
                                                "mpiexec.mpich",
                                                "mpiexec.hydra",
                                                "hydra_pmi_proxy",
                                                "hydra_bstrap_proxy",
                                                "hydra_nameserver",
                                                "srun",
                                                "slurmstepd",
                                                "salloc",
                                                "sbatch",
                                                "aprun",
                                                "jsrun",
                                                "ssh",
                                                "sshd",
                                                "rsh",
                                                "env"};
    for (const char* launcher : launchers)
        if (std::strcmp(name, launcher) == 0) return true;
    return false;
}

void copy_variable(const char* name, char* out, std::size_t capacity) {
    const char* value = std::getenv(name);
    if (value != nullptr) std::snprintf(out, capacity, "%s", value);
}

bool is_set(const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && value[0] != '\0' && std::strcmp(value, "0") != 0;
}

/// IOWEIR_LAYERS: a comma list; absent or "complete": every layer. `ioweir run` has checked it; a word that is wrong all
/// the same (set by hand) is said and every layer is traced.
std::uint32_t layers_to_trace() {
    const char* at = std::getenv("IOWEIR_LAYERS");
    if (at == nullptr || at[0] == '\0') return tracer::all_layers;
    std::uint32_t layers = 0;
    for (;;) {
        const std::size_t length = std::strcspn(at, ",");
        std::uint32_t found = 0;
        if (length == std::strlen("complete") && std::strncmp(at, "complete", length) == 0) found = tracer::all_layers;
        for (const format::LayerName& layer : format::layer_names)
            if (std::strlen(layer.word) == length && std::strncmp(at, layer.word, length) == 0)
                found = static_cast<std::uint32_t>(layer.bit);
        if (found == 0) {
            char words[160];
            std::snprintf(words, sizeof words, "IOWEIR_LAYERS may hold complete or %s; tracing all, not",
                          format::layer_words);
            tracer::complain(words, at, 0);
            return tracer::all_layers;
        }
        layers |= found;
        if (at[length] == '\0') return layers;
        at += length + 1;
    }
}

/// A number of bytes from the environment. `ioweir run` has checked it; one that is wrong all the same (set by hand) is
/// said, and the default is used.
std::uint64_t size_setting(const char* name, std::uint64_t smallest, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    std::uint64_t bytes = otherwise;
    if (text == nullptr || text[0] == '\0' || tracer::parse_size(text, smallest, bytes)) return bytes;
    char words[160];
    if (otherwise == tracer::no_quota)
        std::snprintf(words, sizeof words, "%s must be a number of bytes, at least %llu; there is no limit now, not",
                      name, static_cast<unsigned long long>(smallest));
    else
        std::snprintf(words, sizeof words, "%s must be a number of bytes, at least %llu; it is %llu now, not", name,
                      static_cast<unsigned long long>(smallest), static_cast<unsigned long long>(otherwise));
    tracer::say(words, text, 0);
    return otherwise;
}

__attribute__((constructor)) void load() {
    remember_standard_error();
#if !defined(IOWEIR_LINKED)
    prepare_unwinder();
#endif
    tracer::prepare();
    tracer::resolve_posix(find_next);
    start_library_symbols();
#if !defined(IOWEIR_LINKED)
    clear_weak_references();
#endif
    if (is_set("IOWEIR_DISABLE")) return;
    if (is_launcher(program_invocation_short_name) || stands_aside()) return;
    copy_variable("IOWEIR_DIR", trace_directory, sizeof trace_directory);
    copy_variable("IOWEIR_PLAN", plan_path, sizeof plan_path);
    const char* wants_verify = std::getenv("IOWEIR_VERIFY");
    verify = wants_verify != nullptr && std::strcmp(wants_verify, "1") == 0;
    tracer::Settings settings;
    settings.directory = trace_directory;
    settings.layers = layers_to_trace();
    settings.call_sites = is_set("IOWEIR_CALLSITES");
    settings.find_function = preload::find_program_object;
    settings.limits.buffer_bytes =
        size_setting("IOWEIR_BUFFER", tracer::smallest_buffer_bytes, tracer::default_buffer_bytes);
    settings.limits.quota_bytes = size_setting("IOWEIR_QUOTA", tracer::smallest_quota_bytes, tracer::no_quota);
    settings.anonymise_key = std::getenv("IOWEIR_ANONYMISE");
    copy_variable("IOWEIR_CLOCK", clock, sizeof clock);
    if (clock[0] != '\0') settings.clock = clock;
    if (const char* skew = std::getenv("IOWEIR_TEST_CLOCK_SKEW_NS"))
        settings.test_clock_skew_ns = std::strtoll(skew, nullptr, 10);
    if (trace_directory[0] == '/')
        tracer::start(settings);
    else if (trace_directory[0] != '\0')
        tracer::complain("not tracing: IOWEIR_DIR is not an absolute path:", trace_directory, 0);
    enabled = trace_directory[0] != '\0' || plan_path[0] != '\0';
#if !defined(IOWEIR_LINKED)
    if (enabled) watch_named_files(size_setting("IOWEIR_MERGE_LIMIT", 0, default_merge_limit_bytes));
#endif
}

__attribute__((destructor)) void unload() { tracer::stop(); }

void say_disabled(const char* text, const char* detail) {
    tracer::complain(text, detail, 0);
    if (tracer::process_tracer.active)
        tracer::process_tracer.note(static_cast<std::uint32_t>(format::NoteCode::disabled), "", 0, text);
}

void open_back_end(bool world) {
    static std::atomic<bool> opened;
    if (!enabled || opened.exchange(true)) return;
    Problem problem;
    const StartBackEnd start = find_back_end(problem);
    if (start == nullptr) {
        say_disabled(problem.text, problem.detail);
        return;
    }
    Services services;
    services.tracer = &tracer::process_tracer;
    services.slots = ioweir_slots;
    services.find_next = find_behind;
    services.find_in_mpi = find_in_mpi;
    services.find_object = find_mpi_object;
    services.world = world;
    services.plan_path = plan_path[0] != '\0' ? plan_path : nullptr;
    services.verify = verify;
    services.standard_error = remembered_standard_error();
#if !defined(IOWEIR_LINKED)
    services.find_beside = find_beside;
    services.carry_out = tracer::library::carry_out;
    services.find_program_object = find_program_object;
    services.invoke = tracer::library::invoke;
#endif
    char message[1024] = "";
    if (start(&services, message, sizeof message) != 0) say_disabled("MPI calls are not traced:", message);
    tracer::align_clock(false);
}

/// MPI_Init may come in through MPI_Init and, from within it, PMPI_Init: only the outermost counts.
template <typename Call>
int start_mpi(const char* name, bool world, Call&& call) {
    static thread_local int depth __attribute__((tls_model("initial-exec"))) = 0;
    void* real = depth == 0 ? find_behind(name) : find_in_mpi(name);
    if (real == nullptr) return 16;
    ++depth;
    int code;
    {
        const tracer::Scope scope(tracer::thread_stream, tracer::Layer::mpi, 0);
        if (depth == 1) tracer::process_tracer.mpi_is_starting = true;
        code = call(real);
        if (depth == 1) tracer::process_tracer.mpi_is_starting = false;
        if (depth == 1 && code == 0) open_back_end(world);
    }
    --depth;
    return code;
}

}  // namespace
}  // namespace ioweir::preload

using ioweir::preload::start_mpi;

// Arguments are pointers or integers of register size with every MPI, so no MPI header is needed.
extern "C" {
IOWEIR_EXPORT int MPI_Init(int* argc, char*** argv) {
    return start_mpi("MPI_Init", true,
                     [&](void* real) { return reinterpret_cast<int (*)(int*, char***)>(real)(argc, argv); });
}
IOWEIR_EXPORT int PMPI_Init(int* argc, char*** argv) {
    return start_mpi("PMPI_Init", true,
                     [&](void* real) { return reinterpret_cast<int (*)(int*, char***)>(real)(argc, argv); });
}
IOWEIR_EXPORT int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    return start_mpi("MPI_Init_thread", true, [&](void* real) {
        return reinterpret_cast<int (*)(int*, char***, int, int*)>(real)(argc, argv, required, provided);
    });
}
IOWEIR_EXPORT int PMPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    return start_mpi("PMPI_Init_thread", true, [&](void* real) {
        return reinterpret_cast<int (*)(int*, char***, int, int*)>(real)(argc, argv, required, provided);
    });
}
IOWEIR_EXPORT int MPI_Session_init(void* info, void* handler, void* session) {
    return start_mpi("MPI_Session_init", false, [&](void* real) {
        return reinterpret_cast<int (*)(void*, void*, void*)>(real)(info, handler, session);
    });
}
IOWEIR_EXPORT int PMPI_Session_init(void* info, void* handler, void* session) {
    return start_mpi("PMPI_Session_init", false, [&](void* real) {
        return reinterpret_cast<int (*)(void*, void*, void*)>(real)(info, handler, session);
    });
}
}
