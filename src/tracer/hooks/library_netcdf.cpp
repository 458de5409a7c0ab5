// What PnetCDF and netCDF calls are about: the file behind an ncid, the bytes of an access, and which PnetCDF requests are
// still to be completed. The two interfaces share names, shapes and meanings; PnetCDF has non-blocking calls, several
// variables at once and buffers described by MPI datatypes on top.
#include <cstring>

#include "base/handle_table.hpp"
#include "tracer/hooks/library.hpp"

namespace ioweir::tracer::library {
namespace {

using Count = std::int64_t;  // size_t, ptrdiff_t and MPI_Offset alike

constexpr int most_dimensions = 1024;  // NC_MAX_VAR_DIMS
constexpr int all_requests = -1;       // NC_REQ_ALL, NC_GET_REQ_ALL, NC_PUT_REQ_ALL
constexpr int all_gets = -2;
constexpr int all_puts = -3;

HandleTable<std::uint32_t> id_files;     // ncid -> file + 1
HandleTable<std::uint64_t> pending;      // ncid -> requests begun: writes in the upper half, reads in the lower
HandleTable<std::uint32_t> first_began;  // ncid -> sequence of the oldest of them

/// The same question to either library.
Query pick(const Call& call, Query pnetcdf, Query netcdf) { return call.about.api == Api::pnetcdf ? pnetcdf : netcdf; }

/// The groups of a netCDF-4 file have ids of their own, which share the upper 16 bits (netCDF 4; a netCDF 3 id is small).
std::uintptr_t key_of(const Call& call, int ncid) {
    unsigned number = static_cast<unsigned>(ncid);
    if (call.about.api == Api::netcdf && number > 0xffff) number &= 0xffff'0000U;
    return (static_cast<std::uintptr_t>(call.provider.number) << 40 | static_cast<std::uintptr_t>(call.about.api)
                                                                          << 36) +
           number + 2;
}

std::uint32_t file_of_id(const Call& call, int ncid) {
    std::uint32_t file = id_files.find(key_of(call, ncid));
    if (file != 0) return file - 1;
    // Opened by a function that is not known here, or before the layer was traced. The length is an int or a size_t.
    char path[4096] = "";
    std::uint64_t length = 0;
    const Query query = pick(call, Query::ncmpi_inq_path, Query::nc_inq_path);
    if (call.provider.ask<int>(query, ncid, &length, static_cast<char*>(nullptr)) != 0 || length == 0 ||
        length >= sizeof path || call.provider.ask<int>(query, ncid, &length, static_cast<char*>(path)) != 0)
        return 0;
    file = register_named(call, path);
    id_files.insert(key_of(call, ncid), file);
    return file - 1;
}

int dimensions_of(const Call& call, int ncid, int variable) {
    int count = 0;
    const Query query = pick(call, Query::ncmpi_inq_varndims, Query::nc_inq_varndims);
    const int code = call.provider.ask<int>(query, ncid, variable, &count);
    return code == 0 && count >= 0 && count <= most_dimensions ? count : -1;
}

/// Elements of the whole variable from `start` on, every `stride`th (both may be null): what a missing count means.
Count whole(const Call& call, int ncid, int variable, const Count* start, const Count* stride) {
    const int dimensions = dimensions_of(call, ncid, variable);
    int ids[most_dimensions];
    if (dimensions < 0 || call.provider.ask<int>(pick(call, Query::ncmpi_inq_vardimid, Query::nc_inq_vardimid), ncid,
                                                 variable, static_cast<int*>(ids)) != 0)
        return 0;
    Count product = 1;
    for (int i = 0; i < dimensions; ++i) {
        Count length = 0;
        if (call.provider.ask<int>(pick(call, Query::ncmpi_inq_dimlen, Query::nc_inq_dimlen), ncid, ids[i], &length) !=
            0)
            return 0;
        if (start != nullptr) length -= start[i];
        if (stride != nullptr && stride[i] > 1) length = (length + stride[i] - 1) / stride[i];
        product *= length > 0 ? length : 0;
    }
    return product;
}

Count product_of(const Count* counts, int dimensions) {
    Count product = 1;
    for (int i = 0; i < dimensions; ++i) product *= counts[i];
    return product;
}

/// Elements of one access; `start`, `counts`, `stride`: null where the call is not told them.
Count elements(const Call& call, int variable, const Count* start, const Count* counts, const Count* stride) {
    const int ncid = call.argument<int>(0);
    const Shape shape = call.about.shape;
    if (shape == Shape::var1) return 1;
    if (shape == Shape::var || counts == nullptr) return whole(call, ncid, variable, start, stride);
    const int dimensions = dimensions_of(call, ncid, variable);
    return dimensions < 0 ? 0 : product_of(counts, dimensions);
}

/// Of varn: the sum over its pieces. Without counts each piece is one element.
Count elements_of_pieces(const Call& call, int variable, int pieces, const Count* const* counts) {
    if (counts == nullptr) return pieces;
    const int dimensions = dimensions_of(call, call.argument<int>(0), variable);
    Count sum = 0;
    for (int i = 0; i < pieces && dimensions >= 0; ++i)
        sum += counts[i] != nullptr ? product_of(counts[i], dimensions) : 1;
    return sum;
}

/// Bytes of an element of the variable's own type.
Count own_type_bytes(const Call& call, int variable) {
    const int ncid = call.argument<int>(0);
    int type = 0;
    if (call.provider.ask<int>(pick(call, Query::ncmpi_inq_vartype, Query::nc_inq_vartype), ncid, variable, &type) != 0)
        return 0;
    static constexpr int atomic[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};  // nc_type, from NC_BYTE = 1
    if (type > 0 && type < static_cast<int>(sizeof atomic / sizeof atomic[0])) return atomic[type];
    std::uint64_t bytes = 0;
    if (call.about.api == Api::pnetcdf ||
        call.provider.ask<int>(Query::nc_inq_type, ncid, type, static_cast<char*>(nullptr), &bytes) != 0)
        return 0;
    return static_cast<Count>(bytes);
}

/// Bytes of a buffer of `count` MPI datatypes; -1: the call does not say (MPI_DATATYPE_NULL: the variable's own type).
Count mpi_type_bytes(const void* types, std::size_t index) {
    return process_tracer.mpi_type_bytes != nullptr ? process_tracer.mpi_type_bytes(types, index) : -1;
}

template <typename Pointer>
Pointer optional(const Call& call, int place) {
    return place >= 0 ? call.argument<Pointer>(place) : nullptr;
}

Count bytes_of_access(const Call& call) {
    const LibraryFunction& about = call.about;
    const int variable = call.argument<int>(about.variable);
    Count element = about.element_bytes;
    if (element == 0 && about.buffer_type >= 0) {
        element = mpi_type_bytes(&call.arguments[about.buffer_type], 0);
        // A negative count: as many as the variable's part has (NC_COUNT_IGNORE, PnetCDF 1.13).
        const auto count = call.argument<Count>(about.buffer_count);
        if (element >= 0 && count >= 0) return element * count;
    }
    if (about.shape == Shape::none) return 0;
    if (element <= 0) element = own_type_bytes(call, variable);
    if (about.shape == Shape::varn)
        return element * elements_of_pieces(call, variable, call.argument<int>(about.number),
                                            optional<const Count* const*>(call, about.counts));
    return element * elements(call, variable, optional<const Count*>(call, about.start),
                              optional<const Count*>(call, about.counts), optional<const Count*>(call, about.stride));
}

/// ncmpi_mput_..., ncmpi_mget_...: one piece of each of `number` variables.
Count bytes_of_several(const Call& call) {
    const LibraryFunction& about = call.about;
    const auto* variables = optional<const int*>(call, about.variable);
    const auto* starts = optional<const Count* const*>(call, about.start);
    const auto* counts = optional<const Count* const*>(call, about.counts);
    const auto* strides = optional<const Count* const*>(call, about.stride);
    const auto* buffer_counts = optional<const Count*>(call, about.buffer_count);
    const int number = call.argument<int>(about.number);
    if (variables == nullptr) return 0;
    Count sum = 0;
    for (int i = 0; i < number; ++i) {
        Count element = about.element_bytes;
        if (element == 0) {
            const auto* types = optional<const void*>(call, about.buffer_type);
            element = types != nullptr ? mpi_type_bytes(types, static_cast<std::size_t>(i)) : -1;
            if (element >= 0 && buffer_counts != nullptr && buffer_counts[i] >= 0) {
                sum += element * buffer_counts[i];
                continue;
            }
            if (element <= 0) element = own_type_bytes(call, variables[i]);
        }
        sum += element * elements(call, variables[i], starts != nullptr ? starts[i] : nullptr,
                                  counts != nullptr ? counts[i] : nullptr, strides != nullptr ? strides[i] : nullptr);
    }
    return sum;
}

struct Begun {
    std::uint32_t writes = 0;
    std::uint32_t reads = 0;
};

Begun begun(const Call& call) {
    const std::uint64_t both = pending.find(key_of(call, call.argument<int>(0)));
    return {static_cast<std::uint32_t>(both >> 32), static_cast<std::uint32_t>(both)};
}

void store_begun(const Call& call, Begun now) {
    const std::uintptr_t key = key_of(call, call.argument<int>(0));
    if (now.writes == 0 && now.reads == 0) {
        pending.erase(key);
        first_began.erase(key);
    } else {
        pending.insert(key, static_cast<std::uint64_t>(now.writes) << 32 | now.reads);
    }
}

bool is_reading(const LibraryFunction& about) {
    return std::strcmp(format::functions[static_cast<std::uint16_t>(about.event)].op, "read") == 0;
}

/// The requests that a wait or cancel of `number` ends. Which of them are reads is not said; where both kinds are begun, they
/// are taken to be writes first.
Begun ended(Begun now, int number) {
    if (number == all_requests) return now;
    if (number == all_gets) return {0, now.reads};
    if (number == all_puts) return {now.writes, 0};
    const auto count = static_cast<std::uint32_t>(number > 0 ? number : 0);
    const std::uint32_t writes = count < now.writes ? count : now.writes;
    const std::uint32_t rest = count - writes;
    return {writes, rest < now.reads ? rest : now.reads};
}

}  // namespace

Completion completion_of(const Call& call) {
    const Begun now = begun(call);
    const Begun done = ended(now, call.argument<int>(call.about.number));
    const std::uintptr_t key = key_of(call, call.argument<int>(0));
    return {done.writes == 0 && done.reads > 0, first_began.find(key)};
}

void before_netcdf(const Call& call, Subject& subject) {
    if (call.about.path >= 0) return;
    const int ncid = call.argument<int>(0);
    subject.file = file_of_id(call, ncid);
    if (call.about.body == Body::access) subject.bytes = bytes_of_access(call);
    if (call.about.body == Body::several) subject.bytes = bytes_of_several(call);
    // Before the real call: afterwards another thread may already have the id again.
    if (call.about.body == Body::close) id_files.erase(key_of(call, ncid));
}

void after_netcdf(const Call& call, Word, bool failed, Subject& subject) {
    const LibraryFunction& about = call.about;
    switch (about.body) {
        case Body::open:
        case Body::path: {
            const std::uint32_t file = register_named(call, call.argument<const char*>(about.path));
            subject.file = file - 1;
            const int* made = about.made >= 0 ? call.argument<const int*>(about.made) : nullptr;
            if (!failed && made != nullptr) id_files.insert(key_of(call, *made), file);
            return;
        }
        case Body::close:
            if (failed)
                id_files.insert(key_of(call, call.argument<int>(0)), subject.file + 1);
            else
                store_begun(call, {});
            return;
        case Body::access: {
            if (failed || about.request < 0) return;
            Begun now = begun(call);
            const std::uintptr_t key = key_of(call, call.argument<int>(0));
            if (now.writes == 0 && now.reads == 0) first_began.insert(key, call.sequence);
            ++(is_reading(about) ? now.reads : now.writes);
            store_begun(call, now);
            return;
        }
        case Body::wait:
        case Body::cancel: {
            Begun now = begun(call);
            const Begun done = ended(now, call.argument<int>(about.number));
            now.writes -= done.writes;
            now.reads -= done.reads;
            store_begun(call, now);
            return;
        }
        default:
            return;
    }
}

}  // namespace ioweir::tracer::library
