// Python bindings of sets of partitioned files: what is in one, what is wrong with it, and conversions.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "bindings/planner.hpp"
#include "bindings/text.hpp"
#include "partition/files/convert.hpp"
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

/// Blocks of a set or of serial files.
class Source {
public:
    explicit Source(const std::string& path) : source_(ioweir::value_of(open_source(path))) {}
    [[nodiscard]] BlockSource& get() const { return *source_; }

    [[nodiscard]] nb::tuple header(const std::string& field, std::int64_t part) {
        const BlockHeader header = ioweir::value_of(source_->header(number_of(field), checked(part)));
        return nb::make_tuple(header.bytes, header.parameters);
    }
    [[nodiscard]] nb::bytes read(const std::string& field, std::int64_t part, std::int64_t begin, std::int64_t bytes) {
        const std::int64_t number = number_of(field),
                           all = ioweir::value_of(source_->header(number, checked(part))).bytes;
        if (begin < 0 || bytes < 0 || begin > all || bytes > all - begin) throw nb::index_error("no such bytes");
        std::string items(static_cast<std::size_t>(bytes), '\0');
        if (const auto error = source_->read(number, part - 1, begin, items.data(), bytes))
            ioweir::raise_value_error(error->message());
        return nb::bytes(items.data(), items.size());
    }

private:
    [[nodiscard]] std::int64_t number_of(const std::string& field) const {
        const auto& fields = source_->fields();
        const auto found = std::find(fields.begin(), fields.end(), field) - fields.begin();
        if (found == std::ssize(fields)) throw nb::key_error(field.c_str());
        return found;
    }
    /// From 0.
    [[nodiscard]] std::int64_t checked(std::int64_t part) const {
        if (part < 1 || part > source_->parts()) throw nb::index_error("no such part");
        return part - 1;
    }

    std::unique_ptr<BlockSource> source_;
};

nb::tuple said(const Converted& converted) { return nb::make_tuple(converted.paths, converted.bytes); }

Converted to_set(const Source& source, const std::string& base, std::int64_t step, std::int64_t files, bool directories,
                 bool replaces) {
    const nb::gil_scoped_release released;
    auto converted = write_set(source.get(), {base, step, directories}, files, replaces);
    const nb::gil_scoped_acquire acquired;
    return ioweir::value_of(std::move(converted));
}

Converted to_serial(const Source& source, const std::string& base, std::int64_t step, bool replaces) {
    const nb::gil_scoped_release released;
    auto converted = write_serial(source.get(), base, step, replaces);
    const nb::gil_scoped_acquire acquired;
    return ioweir::value_of(std::move(converted));
}

}  // namespace

void bind_partition(nb::module_& m) {
    nb::class_<Source>(
        m, "PartitionedSource",
        "Blocks of the set or of the serial files that a path belongs to. Parts count from 1. ValueError: it is "
        "none, or damaged.")
        .def(nb::init<const std::string&>(), nb::arg("path"))
        .def_prop_ro("step", [](const Source& one) { return one.get().step(); })
        .def_prop_ro("files", [](const Source& one) { return one.get().files(); })
        .def_prop_ro("parts", [](const Source& one) { return one.get().parts(); })
        .def_prop_ro("fields", [](const Source& one) { return one.get().fields(); })
        .def_prop_ro(
            "swapped", [](const Source& one) { return one.get().is_swapped(); }, "Of the other byte order.")
        .def("header", &Source::header, nb::arg("field"), nb::arg("part"), "Bytes of a block's items, its parameters.")
        .def("read", &Source::read, nb::arg("field"), nb::arg("part"), nb::arg("begin"), nb::arg("bytes"),
             "Some of the items' bytes, as they are in the file.")
        .def(
            "to_set",
            [](const Source& one, const std::string& base, std::int64_t step, std::int64_t files, bool directories,
               bool replaces) { return said(to_set(one, base, step, files, directories, replaces)); },
            nb::arg("base"), nb::arg("step"), nb::arg("files"), nb::arg("directories"), nb::arg("replaces"),
            "Writes a set of so many files; their paths and bytes.")
        .def(
            "to_serial",
            [](const Source& one, const std::string& base, std::int64_t step, bool replaces) {
                return said(to_serial(one, base, step, replaces));
            },
            nb::arg("base"), nb::arg("step"), nb::arg("replaces"), "Writes a file for each part; paths and bytes.");
    m.def("describe_set", &describe_set, nb::arg("path"),
          "What a set of partitioned files has, and what is wrong with it (`problems`); None for a path that is no "
          "set's by its name.");
    m.def("unfinished_sets", &unfinished_at, nb::arg("base"),
          "Hidden names of sets that are being written, or were when their job died.");
}
