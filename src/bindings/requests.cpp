// Requests of a trace: what MPI-IO calls asked for, as columns, and their extents one request at a time.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/requests.hpp"
#include "bindings/columns.hpp"
#include "bindings/rows.hpp"
#include "bindings/trace.hpp"

namespace nb = nanobind;

namespace ioweir {
namespace {

using analysis::Request;

/// Keeps the trace alive that it refers to.
class PyRequests {
public:
    explicit PyRequests(std::shared_ptr<format::TraceFiles> files) : files_(std::move(files)), requests_(*files_) {}

    [[nodiscard]] std::size_t count() const { return requests_.all().size(); }

    template <typename T, typename Get>
    [[nodiscard]] nb::object column(Get get) const {
        std::vector<T> values;
        values.reserve(count());
        for (const Request& request : requests_.all()) values.push_back(static_cast<T>(get(request)));
        return owned_column(std::move(values));
    }

    /// At most so many extents of a request, as (offsets, lengths); None when they are not known.
    [[nodiscard]] nb::object extents(std::size_t number, std::size_t most, bool in_memory) const {
        if (number >= count()) throw nb::index_error("there are not so many requests");
        const Request& request = requests_.all()[number];
        auto pieces = in_memory ? requests_.memory(request) : requests_.extents(request);
        if (!pieces) return nb::none();
        std::vector<std::int64_t> offsets, lengths;
        for (layout::Extent piece; offsets.size() < most && pieces->next(piece);) {
            offsets.push_back(piece.offset);
            lengths.push_back(piece.length);
        }
        return nb::make_tuple(owned_column(std::move(offsets)), owned_column(std::move(lengths)));
    }

    /// Of each request how many extents it has, where the first byte lies, and where the one behind the last; -1 where not known.
    [[nodiscard]] nb::tuple spans() const {
        std::vector<std::int64_t> counts, begins, ends;
        {
            const nb::gil_scoped_release release;
            for (const Request& request : requests_.all()) {
                std::int64_t count = -1, begin = -1, end = -1;
                if (auto pieces = requests_.extents(request)) {
                    count = 0;
                    for (layout::Extent piece; pieces->next(piece); ++count) {
                        begin = count == 0 ? piece.offset : std::min(begin, piece.offset);
                        end = std::max(end, piece.end());
                    }
                }
                counts.push_back(count);
                begins.push_back(begin);
                ends.push_back(end);
            }
        }
        return nb::make_tuple(owned_column(std::move(counts)), owned_column(std::move(begins)),
                              owned_column(std::move(ends)));
    }

private:
    std::shared_ptr<format::TraceFiles> files_;
    analysis::Requests requests_;
};

nb::list datatypes(const PyTrace& self) {
    constexpr std::size_t known = std::size(format::constructor_names);
    return ioweir::rows_of(self.about().datatypes, [&](nb::dict& row, const format::Datatype& type) {
        row["constructor"] = type.constructor < known ? format::constructor_names[type.constructor] : "other";
        row["name"] = type.name;
        row["size"] = type.size;
        row["lower"] = type.lower;
        row["extent"] = type.extent;
        row["values"] = type.values;
        row["types"] = type.types;
    });
}

nb::list views(const PyTrace& self) {
    return ioweir::rows_of(self.about().views, [&](nb::dict& row, const format::View& view) {
        row["set"] = view.set;
        row["displacement"] = view.displacement;
        row["etype"] = view.etype;
        row["filetype"] = view.filetype;
        row["representation"] = view.representation.empty() ? "native" : view.representation;
    });
}

nb::list accesses(const PyTrace& self) {
    return ioweir::rows_of(self.about().accesses, [&](nb::dict& row, const format::Access& access) {
        row["process"] = access.process;
        row["path"] = access.path;
        row["handle"] = access.handle;
        row["view"] = access.has_view ? nb::object(nb::int_(access.view)) : nb::none();
        row["memory"] = access.memory;
        row["ranks"] = access.ranks;
    });
}

}  // namespace

void bind_requests(nb::module_& m, nb::class_<PyTrace>& trace) {
    nb::class_<PyRequests>(
        m, "Requests",
        "What the MPI-IO calls of a trace asked for: a column of each property, one entry a call that "
        "moved data, in the order of each process's calls.")
        .def("__len__", &PyRequests::count)
        .def_prop_ro("process",
                     [](const PyRequests& self) {
                         return self.column<std::uint32_t>([](const Request& r) { return r.process; });
                     })
        .def_prop_ro("thread",
                     [](const PyRequests& self) {
                         return self.column<std::uint32_t>([](const Request& r) { return r.thread; });
                     })
        .def_prop_ro("seq",
                     [](const PyRequests& self) {
                         return self.column<std::uint32_t>([](const Request& r) { return r.sequence; });
                     })
        .def_prop_ro("access",
                     [](const PyRequests& self) {
                         return self.column<std::uint32_t>([](const Request& r) { return r.access; });
                     })
        .def_prop_ro(
            "path",
            [](const PyRequests& self) { return self.column<std::uint32_t>([](const Request& r) { return r.path; }); })
        .def_prop_ro("function",
                     [](const PyRequests& self) {
                         return self.column<std::uint16_t>([](const Request& r) { return r.function; });
                     })
        .def_prop_ro(
            "write",
            [](const PyRequests& self) { return self.column<std::uint8_t>([](const Request& r) { return r.write; }); })
        .def_prop_ro("collective",
                     [](const PyRequests& self) {
                         return self.column<std::uint8_t>([](const Request& r) { return r.collective; });
                     })
        .def_prop_ro("start_ns",
                     [](const PyRequests& self) {
                         return self.column<std::int64_t>([](const Request& r) { return r.start_ns; });
                     })
        .def_prop_ro("duration_ns",
                     [](const PyRequests& self) {
                         return self.column<std::int64_t>([](const Request& r) { return r.duration_ns; });
                     })
        .def_prop_ro(
            "bytes",
            [](const PyRequests& self) { return self.column<std::int64_t>([](const Request& r) { return r.bytes; }); })
        .def("extents", &PyRequests::extents, nb::arg("number"), nb::arg("most") = std::size_t{1} << 20,
             nb::arg("in_memory") = false,
             "Offsets and lengths, in bytes, of at most `most` extents of one request in the order of its data, in the "
             "file "
             "or, relative to the buffer, in memory; None when they are not known.")
        .def("spans", &PyRequests::spans,
             "Three arrays: each request's number of extents, first byte, and byte behind its last one; -1 where not "
             "known.");
    trace.def_prop_ro("datatypes", datatypes)
        .def_prop_ro("views", views)
        .def_prop_ro("accesses", accesses)
        .def("requests", [](const PyTrace& self) {
            const nb::gil_scoped_release release;
            return PyRequests(self.files());
        });
}

}  // namespace ioweir
