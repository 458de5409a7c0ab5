// Fill values: which variables the program wants filled, what with, and where. The library fills at the end of define mode, in each of its files what
// is new there; what it cannot know of, records that other files have, and ncmpi_fill_var_rec of divided variables, is filled here.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "adapters/pnetcdf/arguments.hpp"
#include "adapters/pnetcdf/element_types.hpp"
#include "adapters/pnetcdf/file.hpp"
#include "adapters/pnetcdf/tasks.hpp"
#include "ncsub/linear.hpp"

namespace ioweir::pnetcdf {
namespace {

constexpr const char* fill_attribute = "_FillValue";

/// A rank has at most so much of a fill in memory.
constexpr std::int64_t round_bytes = 16 << 20;

/// A variable in one of the library's files, and the ranks that have it open.
struct Place {
    int ncid = -1;
    int variable = -1;
    MPI_Comm comm{};
};

struct Records {
    std::int64_t first = 0;
    std::int64_t end = 0;
};

struct Value {
    std::array<std::byte, 8> bytes{};
};

/// As the library sees it: of the variable's type, and one. 0 or an error.
int value_of(const File& file, int variable, Value& value) {
    int type = 0;
    Offset length = 0;
    const int code = file.library->inq_att(file.ncid, variable, fill_attribute, &type, &length);
    const auto& about = file.logical.header.variables[static_cast<std::size_t>(variable)];
    if (code == no_error && (type != static_cast<int>(about.type) || length != 1)) return error_type;
    return file.library->inq_var_fill(file.ncid, variable, nullptr, value.bytes.data());
}

bool has_value(const File& file, int variable) {
    int type = 0;
    Offset length = 0;
    return file.library->inq_att(file.ncid, variable, fill_attribute, &type, &length) == no_error;
}

/// Where the elements of a variable's records lie, one record behind the other.
int linear_of(const File& file, const Place& place, ncsub::Type type, ncsub::Linear& array) {
    int count = 0;
    int error = file.library->inq_var(place.ncid, place.variable, nullptr, nullptr, &count, nullptr, nullptr);
    std::vector<int> ids(static_cast<std::size_t>(std::max(count, 0)));
    if (error == no_error)
        error = file.library->inq_var(place.ncid, place.variable, nullptr, nullptr, nullptr, ids.data(), nullptr);
    array.element_bytes = array.record_bytes = ncsub::bytes_of(type);
    array.record = true;
    for (std::size_t d = 0; d < ids.size() && error == no_error; ++d) {
        Offset length = 0;
        error = file.library->inq_dim(place.ncid, ids[d], nullptr, &length);
        array.lengths.push_back(length);
        if (d > 0) array.record_bytes *= length;
    }
    return error;
}

/// Writes the value to all elements of these records: each rank its share of them, by requests that are waited for together. Collective.
int fill(const File& file, const Place& place, ncsub::Type type, Records records, const Value& value) {
    ncsub::Linear array;
    if (const int error = linear_of(file, place, type, array); error != no_error) return error;
    int rank = 0, ranks = 1;
    PMPI_Comm_rank(place.comm, &rank);
    PMPI_Comm_size(place.comm, &ranks);
    const std::int64_t begin = records.first * array.record_bytes, end = records.end * array.record_bytes;
    const std::int64_t whole = (end - begin) / array.element_bytes;
    const std::int64_t share =
        std::min((whole + ranks - 1) / ranks, round_bytes / array.element_bytes) * array.element_bytes;
    const ncsub::Element element = element_of(type);
    std::vector<std::byte> values(static_cast<std::size_t>(share));
    int error = no_error;
    for (std::int64_t round = begin; round < end; round += share * ranks) {
        const std::int64_t from = std::min(end, round + rank * share), to = std::min(end, from + share);
        std::vector<ncsub::Request> parts;
        if (to > from && !ncsub::add_run(array, from, to - from, parts) && error == no_error) error = error_file;
        // The library may swap bytes in place.
        const auto bytes = static_cast<std::size_t>(array.element_bytes);
        for (std::size_t at = 0; at < values.size(); at += bytes)
            std::memcpy(values.data() + at, value.bytes.data(), bytes);
        std::vector<int> requests;
        std::byte* data = values.data();
        for (const ncsub::Request& part : parts) {
            int number = no_request;
            const int code =
                begin_request(*file.library, place.ncid, place.variable, part, element, data, true, number);
            if (error == no_error) error = code;
            if (number != no_request) requests.push_back(number);
            data += elements_of(part) * array.element_bytes;
        }
        const int code =
            file.library->wait_all(place.ncid, static_cast<int>(requests.size()), requests.data(), nullptr);
        if (error == no_error) error = code;
    }
    return error;
}

ncsub::Type type_of(const File& file, int variable) {
    return file.logical.header.variables[static_cast<std::size_t>(variable)].type;
}

/// The new variables' records that are not there yet in one of the library's files.
template <typename PlaceOf>
int fill_records_to_come(const File& file, int ncid, std::size_t first, PlaceOf&& place_of) {
    const std::int64_t all = records_of(file);
    Offset there = -1;
    for (std::size_t v = first; v < file.in_subfile.size(); ++v) {
        const int variable = static_cast<int>(v);
        const Place place = place_of(variable);
        if (place.variable < 0 || !file.fills.wanted[v] || !is_record(file, variable)) continue;
        if (there < 0)
            if (const int error = records_in(file, ncid, there); error != no_error) return error;
        Value value;
        int error = there < all ? value_of(file, variable, value) : no_error;
        if (error == no_error && there < all) error = fill(file, place, type_of(file, variable), {there, all}, value);
        if (error != no_error) return error;
    }
    return no_error;
}

}  // namespace

int find_fills(File& file) {
    int variables = 0;
    int error = file.library->inq(file.ncid, nullptr, &variables, nullptr, nullptr);
    file.fills.wanted.assign(static_cast<std::size_t>(variables), false);
    for (int v = 0; v < variables && error == no_error; ++v) {
        int none = 1;
        error = file.library->inq_var_fill(file.ncid, v, &none, nullptr);
        file.fills.wanted[static_cast<std::size_t>(v)] = none == 0;
    }
    return error;
}

int take_fills(File& file) {
    const int error = find_fills(file);
    return error == no_error ? file.library->set_fill(file.ncid, no_fill, &file.fills.mode) : error;
}

int give_fills(const File& file) {
    const Fills& fills = file.fills;
    int error = file.library->set_fill(file.ncid, fills.mode, nullptr);
    for (std::size_t v = 0; v < fills.wanted.size() && error == no_error; ++v)
        if (fills.wanted[v] != (fills.mode != no_fill))
            error = file.library->def_var_fill(file.ncid, static_cast<int>(v), fills.wanted[v] ? 0 : 1, nullptr);
    return error;
}

int define_fill(const File& file, int ncid, int there, int variable) {
    const Library& library = *file.library;
    int error = no_error;
    // The master gets the attribute with the others.
    if (ncid != file.master) {
        int type = 0;
        Offset length = 0;
        if (has_value(file, variable))
            error = library.copy_att(file.ncid, variable, fill_attribute, ncid, there);
        else if (library.inq_att(ncid, there, fill_attribute, &type, &length) == no_error)
            error = library.del_att(ncid, there, fill_attribute);
    }
    const bool wanted = file.fills.wanted[static_cast<std::size_t>(variable)];
    return error == no_error ? library.def_var_fill(ncid, there, wanted ? 0 : 1, nullptr) : error;
}

int fill_old_records(const File& file, std::size_t first) {
    int error = fill_records_to_come(file, file.master, first, [&](int variable) {
        return Place{file.master, file.is_divided(variable) ? -1 : variable, file.comm};
    });
    for (const Subfile& subfile : file.subfiles) {
        const int code = fill_records_to_come(file, subfile.ncid, first, [&](int variable) {
            return Place{subfile.ncid, file.in_subfile[static_cast<std::size_t>(variable)], file.group};
        });
        if (error == no_error) error = code;
    }
    return agree(file, error);
}

int same_record_on_all(const File& file, const Call& call) {
    if (!file.safe) return no_error;
    const std::int64_t variable = argument<int>(call, 1), record = argument<Offset>(call, 2);
    std::array<std::int64_t, 4> bounds{variable, record, -variable, -record};
    if (PMPI_Allreduce(MPI_IN_PLACE, bounds.data(), static_cast<int>(bounds.size()), MPI_INT64_T, MPI_MAX, file.comm) !=
        MPI_SUCCESS)
        return error_file;
    return bounds[0] == -bounds[2] && bounds[1] == -bounds[3] ? no_error : error_arguments;
}

int fill_record(File& file, const Call& call) {
    const auto variable = argument<int>(call, 1);
    const auto record = argument<Offset>(call, 2);
    const bool independent = file.state == File::State::independent;
    const auto wrong_mode = [&] {
        if (!file.writable) return error_permission;
        return file.state == File::State::define ? error_in_define : no_error;
    };
    // In safe mode alone does the library (1.12) look at the mode first, and refuse independent mode at all.
    if (const int wrong = file.safe ? wrong_mode() : no_error; wrong != no_error) return wrong;
    if (!is_record(file, variable)) return error_no_record;
    if (file.safe && independent) return error_independent;
    if (!file.fills.wanted[static_cast<std::size_t>(variable)] && !has_value(file, variable)) return error_no_fill;
    if (const int wrong = wrong_mode(); wrong != no_error) return wrong;
    Value value;
    int error = value_of(file, variable, value);
    if (error == no_error && record < 0) error = error_coordinates;
    for (const Subfile& subfile : file.subfiles) {
        const Place place{subfile.ncid, file.in_subfile[static_cast<std::size_t>(variable)], file.group};
        if (error == no_error) error = fill(file, place, type_of(file, variable), {record, record + 1}, value);
    }
    error = agree(file, error);
    if (error != no_error) return error;
    std::int64_t most = record + 1;
    if (PMPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, file.comm) != MPI_SUCCESS) return error_file;
    file.records = std::max(file.records, most);
    return independent ? settle_records(file) : keep_records(file);
}

}  // namespace ioweir::pnetcdf
