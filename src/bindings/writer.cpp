// Writing trace files from Python: tests and simulated runs.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include "bindings/text.hpp"
#include "bindings/trace.hpp"
#include "format/writer.hpp"

namespace nb = nanobind;

namespace ioweir {

void bind_writer(nb::module_& m) {
    using format::NodeWriter;
    nb::class_<NodeWriter>(m, "NodeWriter", "Writes the trace file of one node. Ticks are nanoseconds after its epoch.")
        .def(
            "__init__",
            [](NodeWriter* self, const std::string& path, const std::string& host, std::int64_t epoch_ns) {
                new (self) NodeWriter(ioweir::value_of(NodeWriter::create(path, host, epoch_ns)));
            },
            nb::arg("path"), nb::arg("host"), nb::arg("epoch_ns"))
        .def("begin_thread", &NodeWriter::begin_thread, nb::arg("image"), nb::arg("number"), nb::arg("kernel_id"),
             nb::arg("tick"), "Returns the thread's handle.")
        .def(
            "process",
            [](NodeWriter& self, std::uint32_t thread, std::uint64_t image, std::uint64_t parent_image,
               std::uint32_t pid, std::uint32_t ppid, std::uint64_t tick, const std::string& executable) {
                self.record(thread, format::ProcessRecord{{}, {}, {}, image, parent_image, pid, ppid, tick},
                            executable);
            },
            nb::arg("thread"), nb::arg("image"), nb::arg("parent_image"), nb::arg("pid"), nb::arg("ppid"),
            nb::arg("tick"), nb::arg("executable"))
        .def(
            "file",
            [](NodeWriter& self, std::uint32_t thread, std::uint32_t file, const std::string& path) {
                self.record(thread, format::FileRecord{{}, {}, {}, file, 0}, path);
            },
            nb::arg("thread"), nb::arg("file"), nb::arg("path"))
        .def(
            "rank",
            [](NodeWriter& self, std::uint32_t thread, std::uint32_t rank, std::uint32_t ranks, std::uint64_t tick,
               const std::string& library) {
                self.record(thread, format::RankRecord{{}, {}, {}, rank, ranks, tick}, library);
            },
            nb::arg("thread"), nb::arg("rank"), nb::arg("ranks"), nb::arg("tick"), nb::arg("library"))
        .def(
            "finalize",
            [](NodeWriter& self, std::uint32_t thread, std::uint64_t tick) {
                self.record(thread, format::FinalizeRecord{{}, {}, {}, tick});
            },
            nb::arg("thread"), nb::arg("tick"))
        .def(
            "end",
            [](NodeWriter& self, std::uint32_t thread, std::uint64_t tick) {
                self.record(thread, format::EndRecord{{}, {}, {}, tick});
            },
            nb::arg("thread"), nb::arg("tick"))
        .def(
            "event",
            [](NodeWriter& self, std::uint32_t thread, std::uint16_t function, std::uint8_t origin, bool failed,
               std::uint32_t file, std::uint32_t sequence, std::uint32_t parent, std::uint64_t start, std::uint64_t end,
               std::int64_t offset, std::int64_t bytes, std::uint32_t site, std::uint64_t missing) {
                self.event(thread, format::EventFields{.function = function,
                                                       .origin = origin,
                                                       .failed = failed,
                                                       .file = file,
                                                       .sequence = sequence,
                                                       .parent = parent,
                                                       .start = start,
                                                       .end = end,
                                                       .offset = offset,
                                                       .bytes = bytes,
                                                       .site = site,
                                                       .missing = missing});
            },
            nb::arg("thread"), nb::arg("function"), nb::arg("origin"), nb::arg("failed"), nb::arg("file"),
            nb::arg("seq"), nb::arg("parent"), nb::arg("start"), nb::arg("end"), nb::arg("offset"), nb::arg("bytes"),
            nb::arg("site") = 0, nb::arg("missing") = 0,
            "A call, in the order of their ends; bytes of a failed one: minus errno.")
        .def(
            "module",
            [](NodeWriter& self, std::uint32_t thread, std::uint32_t module, const std::string& path) {
                self.record(thread, format::ModuleRecord{{}, {}, {}, module, 0, {}}, path);
            },
            nb::arg("thread"), nb::arg("module"), nb::arg("path"))
        .def("site", &NodeWriter::site, nb::arg("thread"), nb::arg("site"), nb::arg("frames"),
             "Frames, innermost first: module << 48 | address.")
        .def("dropped", &NodeWriter::dropped, nb::arg("events"))
        .def("finish", [](NodeWriter& self) {
            const auto finished = self.finish();
            if (!finished) ioweir::raise_value_error(finished.error().message());
        });
}

}  // namespace ioweir
