// Python bindings of containers: what one holds, and making it an ordinary file. What does not live here: the command line.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "bindings/planner.hpp"
#include "bindings/rows.hpp"
#include "bindings/text.hpp"
#include "container/files/access.hpp"
#include "container/merge.hpp"
#include "container/sharing/orphans.hpp"
#include "ncsub/access.hpp"
#include "ncsub/core/partition.hpp"
#include "ncsub/files.hpp"
#include "ncsub/header.hpp"
#include "ncsub/writing.hpp"
#include "storage/posix.hpp"

namespace nb = nanobind;

namespace {

nb::dict describe_container(const std::string& path) {
    const ioweir::container::Description what = ioweir::value_of(ioweir::container::describe(path));
    nb::dict row;
    row["path"] = path;
    row["id"] = what.header_file.id;
    row["version"] = what.header_file.version;
    row["mapping"] = to_text(what.header_file.shape);
    row["directory"] = what.directory;
    row["bytes"] = what.bytes;
    row["held_bytes"] = what.held_bytes;
    row["part_bytes"] = what.part_bytes;
    row["part_paths"] = what.part_paths;
    row["segments"] = what.segments;
    row["index_entries"] = what.entries;
    row["open_generations"] = what.open;
    row["problems"] = what.problems;
    return row;
}

std::int64_t merge_container(const std::string& path, const std::string& output, bool unfinished) {
    ioweir::storage::PosixBackend posix;
    const auto merged = [&] {
        const nb::gil_scoped_release released;
        return ioweir::container::merge(posix, path, output, nullptr, unfinished);
    }();
    return ioweir::value_of(merged);
}

/// For files whose mode or owner was changed by something that knows nothing of their parts.
void follow_access(const std::string& path) {
    (void)ioweir::container::follow_header_file_at(path, {{}, true});
    (void)ioweir::ncsub::follow_master_at(path);
}

/// Empty: no container is there.
std::string container_directory(const std::string& path) {
    const auto header_file = ioweir::container::read_header_file(path);
    return header_file && header_file.value() ? ioweir::container::directory_of(path, header_file.value()->id)
                                              : std::string();
}

/// 0: no netCDF file, or one whose arrays lie in it.
std::int64_t netcdf_subfiles(const std::string& path) {
    const auto header = ioweir::ncsub::read_master(path);
    if (!header || !ioweir::ncsub::is_master(header.value())) return 0;
    return ioweir::value_of(ioweir::ncsub::logical_of(header.value(), path)).subfiles;
}

nb::dict describe_netcdf(const std::string& path) {
    const ioweir::ncsub::Description what = ioweir::value_of(ioweir::ncsub::describe(path));
    nb::list arrays;
    for (const ioweir::ncsub::Array& array : what.arrays) {
        nb::dict one;
        one["name"] = array.name;
        one["dimension"] = array.dimension;
        one["boundaries"] = array.boundaries;
        arrays.append(one);
    }
    nb::dict row;
    row["path"] = path;
    row["id"] = what.id;
    row["mapping"] = "netcdf-subfiles:" + std::to_string(what.part_paths.size() - 1);
    row["bytes"] = what.bytes;
    row["records"] = what.records;
    row["arrays"] = arrays;
    row["part_bytes"] = what.part_bytes;
    row["part_paths"] = what.part_paths;
    row["problems"] = what.problems;
    row["unfinished"] = what.unfinished;
    return row;
}

/// The dimension that the variable's attribute asks for, else the one of that name (adapters/pnetcdf/define.cpp).
std::optional<int> asked_dimension(const ioweir::ncsub::Header& header, const ioweir::ncsub::Variable& variable,
                                   const std::string& par_dim) {
    for (const char* name : {"par_dim_id", "_PnetCDF_SubFiling.par_dim_id"}) {
        const ioweir::ncsub::Attribute* const attribute = ioweir::ncsub::find(variable.attributes, name);
        if (attribute == nullptr) continue;
        if (const auto ids = ioweir::ncsub::integers_of(*attribute); ids.size() == 1) return static_cast<int>(ids[0]);
    }
    for (std::size_t i = 0; i < header.dimensions.size() && !par_dim.empty(); ++i)
        if (header.dimensions[i].name == par_dim) return static_cast<int>(i);
    return std::nullopt;
}

nb::dict netcdf_division(const std::string& path, std::int64_t subfiles, const std::string& par_dim) {
    namespace ncsub = ioweir::ncsub;
    const ncsub::Header header = ioweir::value_of(ncsub::read_header(path));
    nb::list arrays;
    for (const ncsub::Variable& variable : header.variables) {
        ncsub::Shape shape;
        shape.record = header.is_record(variable);
        nb::list names;
        for (const std::int64_t id : variable.dimensions) {
            const ncsub::Dimension& dimension = header.dimensions[static_cast<std::size_t>(id)];
            shape.lengths.push_back(dimension.length);
            shape.dimension_ids.push_back(static_cast<int>(id));
            names.append(dimension.name);
        }
        const ncsub::Choice choice =
            ncsub::choose_dimension(shape, {subfiles, 0, asked_dimension(header, variable, par_dim)});
        nb::dict row;
        row["name"] = variable.name;
        row["begin"] = variable.begin;
        row["element_bytes"] = ncsub::bytes_of(variable.type);
        row["dimensions"] = names;
        row["lengths"] = shape.lengths;
        row["record"] = shape.record;
        row["divided"] = choice.dimension;
        row["boundaries"] =
            choice.dimension < 0
                ? std::vector<std::int64_t>{}
                : ncsub::boundaries_of(shape.lengths[static_cast<std::size_t>(choice.dimension)], subfiles);
        arrays.append(row);
    }
    nb::dict result;
    result["arrays"] = arrays;
    result["records"] = header.records;
    result["record_bytes"] = ncsub::record_bytes(header);
    return result;
}

std::int64_t merge_netcdf(const std::string& path, const std::string& output, bool unfinished) {
    const auto merged = [&] {
        const nb::gil_scoped_release released;
        return ioweir::ncsub::merge(path, output, unfinished);
    }();
    return ioweir::value_of(merged);
}

nb::object netcdf_leftover(const std::string& path) {
    const auto left = ioweir::ncsub::leftover_at(path);
    if (!left) return nb::none();
    nb::dict row;
    row["file"] = left->file;
    row["problem"] = left->problem;
    row["in_use"] = left->in_use;
    return row;
}

nb::list find_orphans(const std::string& folder) {
    const auto found = ioweir::value_of(ioweir::container::find_orphans(folder));
    return ioweir::rows_of(found, [&](nb::dict& row, const ioweir::container::Orphan& orphan) {
        row["directory"] = orphan.directory;
        row["file"] = orphan.file;
        row["bytes"] = orphan.bytes;
        row["problem"] = orphan.problem;
        row["in_use"] = orphan.in_use;
    });
}

void remove_orphan(const std::string& directory) {
    const auto removed = ioweir::container::remove_orphan(directory);
    if (!removed) ioweir::raise_value_error(removed.error().message());
}

}  // namespace

void bind_container(nb::module_& m) {
    m.def("describe_container", &describe_container, nb::arg("path"),
          "What the container at a header file's path holds. Raises ValueError when it is none, or cannot be read.");
    m.def("merge_container", &merge_container, nb::arg("path"), nb::arg("output"), nb::arg("unfinished") = false,
          "Writes the logical file to `output` (the header file's own path: in its place) and returns its length in "
          "bytes. "
          "Raises ValueError, and leaves everything as it was, when that cannot be done; also where writing was not "
          "ended, in its place and without `unfinished`.");
    m.def("unfinished_container", &ioweir::container::unfinished_of, nb::arg("path"),
          "What may be missing of a container because writing was begun and not ended: texts for a person.");
    m.def("follow_access", &follow_access, nb::arg("path"),
          "Gives the parts of a file in several the owner, group, mode and ACL of the file, as far as the caller may.");
    m.def("container_directory", &container_directory, nb::arg("path"),
          "The directory of a container's parts, by its header file; empty: no container is there.");
    m.def(
        "netcdf_subfiles", &netcdf_subfiles, nb::arg("path"),
        "Over how many subfiles the arrays of a netCDF file are divided; 0: it is no such file. Raises ValueError when "
        "it contradicts itself.");
    m.def("describe_netcdf", &describe_netcdf, nb::arg("path"),
          "The same as describe_container for such a file: its arrays, and where their parts begin; the master is its "
          "first part, "
          "and the bytes of a part that is missing are -1.");
    m.def(
        "netcdf_division", &netcdf_division, nb::arg("path"), nb::arg("subfiles"), nb::arg("par_dim") = "",
        "How the arrays of an ordinary netCDF file would be divided over subfiles: `records`, `record_bytes` (from one "
        "record to the next) and `arrays`, one dict each: name, begin (of its first byte), element_bytes, dimensions "
        "(names), lengths (of the unlimited one 0), record, divided (which dimension; -1: it stays whole), boundaries "
        "(where its parts begin, and the end). Raises ValueError where it is no such file.");
    m.def("merge_netcdf", &merge_netcdf, nb::arg("path"), nb::arg("output"), nb::arg("unfinished") = false,
          "The same as merge_container for a netCDF file whose arrays lie in subfiles.");
    m.def("netcdf_leftover", &netcdf_leftover, nb::arg("path"),
          "What a job that has died left of a divided netCDF file, by its name and what it says; None: it is no such "
          "file.");
    m.def("find_orphans", &find_orphans, nb::arg("folder"),
          "The directories of containers in a folder whose header file is not there. Raises ValueError where it cannot "
          "be "
          "read.");
    m.def("remove_orphan", &remove_orphan, nb::arg("directory"),
          "Removes such a directory. Raises ValueError when it is none, or holds what is not a container's.");
}
