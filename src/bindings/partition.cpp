// Python bindings of sets of partitioned files: what is in one, and what is wrong with it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "bindings/planner.hpp"
#include "partition/files/new_set.hpp"
#include "partition/files/set_reader.hpp"

namespace nb = nanobind;
using namespace ioweir::partition;  // NOLINT

namespace {

/// None: by its name the path belongs to no set.
nb::object describe_set(const std::string& path) {
    const auto name = set_of_path(path);
    if (!name) return nb::none();
    nb::dict row;
    row["path"] = name->directories ? name->directory() : name->manifest();
    row["base"] = name->base;
    row["step"] = name->step;
    const auto reader = SetReader::open(name->base, name->step);
    if (!reader) {
        row["problems"] = std::vector<std::string>{reader.error().message()};
        return row;
    }
    const Manifest& manifest = reader.value().manifest();
    row["has_manifest"] = reader.value().has_manifest();
    row["ranks"] = manifest.ranks;
    row["fields"] = reader.value().fields();
    row["parts"] = manifest.parts();
    std::vector<std::string> paths;
    std::vector<std::int64_t> bytes, parts;
    for (std::int64_t file = 0; file < std::ssize(manifest.files); ++file) {
        paths.push_back(reader.value().name().file(file));
        bytes.push_back(manifest.files[static_cast<std::size_t>(file)].bytes);
        parts.push_back(manifest.files[static_cast<std::size_t>(file)].parts.count);
    }
    row["file_paths"] = paths;
    row["file_bytes"] = bytes;
    row["file_parts"] = parts;
    row["problems"] = [&] {
        const nb::gil_scoped_release released;
        return check_set(name->base, name->step);
    }();
    return row;
}

}  // namespace

void bind_partition(nb::module_& m) {
    m.def("describe_set", &describe_set, nb::arg("path"),
          "What a set of partitioned files has, and what is wrong with it (`problems`); None for a path that is no "
          "set's by its name.");
    m.def("unfinished_sets", &unfinished_at, nb::arg("base"),
          "Hidden names of sets that are being written, or were when their job died.");
}
