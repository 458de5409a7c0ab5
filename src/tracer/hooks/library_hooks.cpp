// The exported hooks of HDF5, PnetCDF and netCDF: guard, real call, record. Each is a few instructions
// (ioweir_generated/library_hooks.inc) around library_call().
// What does not live here: what a call's arguments mean (library_hdf5.cpp, library_netcdf.cpp), where its real function is
// (preload/library_symbols.cpp).
#include <cstdint>
#include <cstring>
#include <utility>

#include "tracer/hooks/library.hpp"
#include "tracer/hooks/posix_bodies.hpp"

#define IOWEIR_EXPORT __attribute__((visibility("default")))

namespace ioweir::tracer::library {

const LibraryFunction functions[] = {
#include "ioweir_generated/library_functions.inc"
};
const int function_count = static_cast<int>(sizeof functions / sizeof functions[0]);
#if defined(IOWEIR_LINKED)
Resolve resolve = linked_library_call;
#else
Resolve resolve = nullptr;
#endif
CarryOut carry_out[api_count] = {};

namespace {

/// The real function that this thread is in.
constinit thread_local const void* running __attribute__((tls_model("initial-exec"))) = nullptr;

class Running {
public:
    explicit Running(const void* function) : outer_(running) { running = function; }
    ~Running() { running = outer_; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

private:
    const void* outer_;
};

template <std::size_t... Places>
Word invoke_with(void* function, const Word* arguments, std::index_sequence<Places...>) {
    return reinterpret_cast<Word (*)(decltype(static_cast<Word>(Places))...)>(function)(arguments[Places]...);
}

}  // namespace

Word invoke(void* function, const Word* arguments, int count) {
    switch (count) {
        case 0:
            return invoke_with(function, arguments, std::make_index_sequence<0>{});
        case 1:
            return invoke_with(function, arguments, std::make_index_sequence<1>{});
        case 2:
            return invoke_with(function, arguments, std::make_index_sequence<2>{});
        case 3:
            return invoke_with(function, arguments, std::make_index_sequence<3>{});
        case 4:
            return invoke_with(function, arguments, std::make_index_sequence<4>{});
        case 5:
            return invoke_with(function, arguments, std::make_index_sequence<5>{});
        case 6:
            return invoke_with(function, arguments, std::make_index_sequence<6>{});
        case 7:
            return invoke_with(function, arguments, std::make_index_sequence<7>{});
        case 8:
            return invoke_with(function, arguments, std::make_index_sequence<8>{});
        case 9:
            return invoke_with(function, arguments, std::make_index_sequence<9>{});
        case 10:
            return invoke_with(function, arguments, std::make_index_sequence<10>{});
        case 11:
            return invoke_with(function, arguments, std::make_index_sequence<11>{});
        default:
            return invoke_with(function, arguments, std::make_index_sequence<12>{});
    }
}

namespace {

/// What lies behind the hooks, but for calls that somebody else carries out.
Word reach(const LibraryFunction& about, const Real& real, const Word* arguments) {
    Word result = 0;
    const CarryOut carries = carry_out[static_cast<int>(about.api)];
    if (carries != nullptr && real.provider != nullptr && real.provider->traced &&
        carries(about.symbol, real, arguments, about.arguments, &result))
        return result;
    return invoke(real.function, arguments, about.arguments);
}

Layer layer_of(Api api) {
    return api == Api::hdf5 ? Layer::hdf5 : api == Api::pnetcdf ? Layer::pnetcdf : Layer::netcdf;
}

LayerBit bit_of(Api api) {
    return api == Api::hdf5 ? LayerBit::hdf5 : api == Api::pnetcdf ? LayerBit::pnetcdf : LayerBit::netcdf;
}

/// Those that places of arguments count.
const Word* own_arguments(const LibraryFunction& about, const Word* arguments) {
    return arguments + (about.asynchronous ? ahead_of_arguments : 0);
}

bool has_failed(const LibraryFunction& about, Word result) {
    if (about.returns == Returns::hid_t) return static_cast<std::int64_t>(result) < 0;
    const auto code = static_cast<std::int32_t>(result);
    return about.api == Api::hdf5 ? code < 0 : code != 0;
}

Word traced(const LibraryFunction& about, const Real& real, const Word* arguments, const void* frame) {
    ThreadStream& stream = thread_stream;
    const bool use_tsc = process_tracer.use_tsc;
    const Context context = context_of(stream, frame);
    const std::uint32_t sequence = next_sequence(stream);
    const Call call{about, *real.provider, own_arguments(about, arguments), stream, sequence};
    Subject subject;
    std::uint64_t start = ticks(use_tsc);
    std::uint64_t stop = 0;
    Word result = 0;
    {
        const Scope scope(stream, layer_of(about.api), sequence);
        {
            const KeepErrno error;
            if (about.api == Api::hdf5)
                before_hdf5(call, subject);
            else
                before_netcdf(call, subject);
        }
        // A question may have made the library read what it had put off: then that is part of the call.
        if (stream.sequence == sequence) [[likely]]
            start = ticks(use_tsc);
        result = reach(about, real, arguments);
        stop = ticks(use_tsc);
    }
    const KeepErrno error;
    const bool failed = has_failed(about, result);
    Completion completion;
    if (about.body == Body::wait) completion = completion_of(call);
    {
        const Scope scope(stream, layer_of(about.api), 0);  // questions are no events
        if (about.api == Api::hdf5)
            after_hdf5(call, result, failed, subject);
        else
            after_netcdf(call, result, failed, subject);
    }
    const std::int64_t code = failed ? static_cast<std::int32_t>(result) : 0;
    record_event(process_tracer, stream, completion.reading ? about.reading : about.event, context, sequence,
                 subject.file, start, stop, completion.began != 0 ? static_cast<std::int64_t>(completion.began) : -1,
                 failed ? -code : subject.bytes, failed);
    if (about.body == Body::open || about.body == Body::close) sample_clock(stream);
    return result;
}

bool is_put_off_call(const LibraryFunction& about, const Real& real, const Word* arguments) {
    const KeepErrno error;
    return is_put_off(about, *real.provider, own_arguments(about, arguments));
}

/// What every hook calls. `caller`: its return address; `arguments`: as many as the function has.
__attribute__((noinline)) Word library_call(int number, const void* caller, const Word* arguments) {
    const LibraryFunction& about = functions[number];
    const Real real = resolve != nullptr ? resolve(number, caller, running) : Real{};
    // Nobody defines it: an error with every one of these libraries.
    if (real.function == nullptr) return static_cast<Word>(-1);
    const Running now(real.function);
    const void* frame = __builtin_frame_address(0);
    if (about.body == Body::plain || !process_tracer.traces(bit_of(about.api)) || real.provider == nullptr ||
        !real.provider->traced || inside(thread_stream, layer_of(about.api), frame) ||
        (about.body == Body::release && !concerns_hdf5(about, *real.provider, *own_arguments(about, arguments))) ||
        (about.asynchronous && is_put_off_call(about, real, arguments)))
        return reach(about, real, arguments);
    if (about.body == Body::forget) {
        const Word result = reach(about, real, arguments);
        Subject none;
        after_hdf5({about, *real.provider, arguments, thread_stream, 0}, result, false, none);
        return result;
    }
    return traced(about, real, arguments, frame);
}

}  // namespace

std::uint32_t register_named(const Call& call, const char* path) {
    constexpr std::uint32_t no_file = 1;
    if (path == nullptr || path[0] == '\0') return no_file;
    if (std::strstr(path, "://") == nullptr) return process_tracer.register_file(call.stream, path) + 1;
    // netCDF's "file://path#mode=zarr"; anything else lies behind a network.
    constexpr std::size_t prefix = 7;
    if (std::strncmp(path, "file://", prefix) != 0) return no_file;
    char plain[4096];
    const std::size_t length = std::strcspn(path + prefix, "#?");
    if (length >= sizeof plain) return no_file;
    std::memcpy(plain, path + prefix, length);
    plain[length] = '\0';
    return process_tracer.register_file(call.stream, plain) + 1;
}

}  // namespace ioweir::tracer::library

using ioweir::tracer::library::library_call;
using ioweir::tracer::library::Word;
#include "ioweir_generated/library_hooks.inc"
