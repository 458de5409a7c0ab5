// The Python module ioweir._core: traces, their sums and columns without copies, and the planner's plan file.
// What does not live here: judgement of any kind (python/ioweir).
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "bindings/columns.hpp"
#include "bindings/planner.hpp"
#include "bindings/rows.hpp"
#include "bindings/text.hpp"
#include "bindings/trace.hpp"
#include "format/reader.hpp"

namespace nb = nanobind;
using namespace ioweir;  // NOLINT

namespace {

nb::list processes(const PyTrace& self) {
    return ioweir::rows_of(self.about().processes, [&](nb::dict& row, const format::Process& p) {
        row["pid"] = p.pid;
        row["ppid"] = p.ppid;
        row["image"] = p.image;
        row["parent_image"] = p.parent_image;
        row["host"] = self.about().hosts[p.host];
        row["executable"] = p.executable;
        row["rank"] = p.rank;
        row["ranks"] = p.ranks;
        row["mpi_library"] = p.mpi_library;
        row["start_ns"] = p.start_ns;
        row["end_ns"] = p.end_ns;
        row["mpi_init_ns"] = p.mpi_init_ns;
        row["mpi_finalize_ns"] = p.mpi_finalize_ns;
    });
}

nb::list notes(const PyTrace& self) {
    constexpr std::size_t known = std::size(format::notecode_names);
    return ioweir::rows_of(self.about().notes, [&](nb::dict& row, const format::Note& n) {
        row["process"] = n.process;
        row["code"] = n.code < known ? format::notecode_names[n.code] : "unknown";
        row["path"] = n.path;
        row["value"] = n.value;
        row["text"] = n.text;
        row["time_ns"] = n.time_ns;
    });
}

nb::list verdicts(const PyTrace& self) {
    constexpr std::size_t known = std::size(format::verifyoutcome_names);
    return ioweir::rows_of(self.about().verdicts, [&](nb::dict& row, const format::Verdict& one) {
        row["process"] = one.process;
        row["outcome"] = one.outcome < known ? format::verifyoutcome_names[one.outcome] : "unknown";
        row["path"] = one.path;
        row["calls"] = one.calls;
        row["bytes"] = one.bytes;
        row["offset"] = one.offset;
        row["text"] = one.text;
    });
}

nb::list engine_work(const PyTrace& self) {
    nb::list out;
    for (const format::EngineWork& one : self.about().engine_work) {
        nb::dict figures;
        const auto put = [&](const char* name, bool, std::int64_t figure) { figures[name] = figure; };
        format::EngineFigures<std::int64_t>::for_each(one.figures, put);
        nb::dict row;
        row["process"] = one.process;
        row["path"] = one.path;
        row["figures"] = figures;
        out.append(row);
    }
    return out;
}

nb::list weighed_calls(const PyTrace& self) {
    const auto name = [](const auto& names, std::uint32_t number) {
        return number < std::size(names) ? names[number] : "unknown";
    };
    return ioweir::rows_of(self.about().weighed_calls, [&](nb::dict& row, const format::WeighedCalls& one) {
        row["process"] = one.process;
        row["path"] = one.path;
        row["call"] = name(format::callkind_names, one.call);
        row["chosen"] = name(format::chosen_names, one.chosen);
        format::WeighedFigures<std::int64_t>::for_each(
            one.figures, [&](const char* figure_name, bool, std::int64_t figure) { row[figure_name] = figure; });
    });
}

nb::list chosen_files(const PyTrace& self) {
    return ioweir::rows_of(self.about().chosen_files, [&](nb::dict& row, const format::ChosenFile& one) {
        row["process"] = one.process;
        row["series"] = one.series;
        row["words"] = one.words;
        row["step"] = one.step < std::size(format::choicestep_names) ? format::choicestep_names[one.step] : "unknown";
        row["ranks"] = one.ranks;
        format::ChosenFigures<std::int64_t>::for_each(
            one.figures, [&](const char* figure_name, bool, std::int64_t figure) { row[figure_name] = figure; });
    });
}

/// Each figure's name, and whether the largest counts and not the sum.
nb::dict engine_figures() {
    nb::dict out;
    const auto put = [&](const char* name, bool largest, std::int64_t) { out[name] = largest; };
    format::EngineFigures<std::int64_t>::for_each(format::EngineFigures<std::int64_t>{}, put);
    return out;
}

nb::list clocks(const PyTrace& self) {
    return ioweir::rows_of(self.about().clocks, [&](nb::dict& row, const format::ClockAlignment& clock) {
        row["aligned"] = clock.aligned;
        row["first_offset_ns"] = clock.first_offset_ns;
        row["last_offset_ns"] = clock.last_offset_ns;
        row["uncertainty_ns"] = clock.uncertainty_ns;
    });
}

nb::list modules(const PyTrace& self) {
    return ioweir::rows_of(self.about().modules, [&](nb::dict& row, const format::Module& module) {
        row["path"] = module.path;
        row["build_id"] = module.build_id;
    });
}

nb::list sites(const PyTrace& self) {
    nb::list out;
    for (const std::vector<format::SiteFrame>& frames : self.about().sites) {
        nb::list site;
        for (const format::SiteFrame& frame : frames) site.append(nb::make_tuple(frame.module, frame.address));
        out.append(nb::tuple(site));
    }
    return out;
}

nb::list functions() {
    nb::list out;
    for (std::uint16_t id = 1; id < format::function_count; ++id) {
        const format::FunctionInfo& info = format::functions[id];
        nb::dict row;
        row["id"] = id;
        row["name"] = info.name;
        row["layer"] = info.layer;
        row["op"] = info.op;
        row["collective"] = info.collective;
        row["completes"] = info.completes;
        row["begins"] = info.begins;
        row["late"] = info.late;
        nb::list symbols;
        for (const char* at = info.symbols; *at != '\0';) {
            const std::size_t length = std::strcspn(at, " ");
            symbols.append(nb::str(at, length));
            at += length + (at[length] == ' ' ? 1 : 0);
        }
        row["symbols"] = symbols;
        out.append(row);
    }
    return out;
}

PyTrace read_trace(const std::vector<std::string>& files, const std::vector<std::string>& shown,
                   const format::RunSpan& span) {
    Result<format::TraceFiles> trace = Error{};
    {
        const nb::gil_scoped_release release;
        trace = format::TraceFiles::open(files, span, shown);
    }
    return PyTrace(value_of(std::move(trace)));
}

/// When the last call ended; 0 where there is none. Goes through all events.
std::int64_t last_end_ns(const PyTrace& self) {
    const nb::gil_scoped_release release;
    const format::TraceFiles& files = *self.files();
    std::int64_t last = files.event_count() != 0 ? std::numeric_limits<std::int64_t>::min() : 0;
    for (std::uint32_t thread = 0; thread < files.threads().size(); ++thread) {
        format::ThreadCursor cursor = files.cursor(thread);
        for (format::Event event; cursor.next(event);)
            last = std::max(last, format::codec::sum(event.start_ns, event.duration_ns));
    }
    return last;
}

nb::list threads(const PyTrace& self) {
    nb::list out;
    for (const format::Thread& thread : self.files()->threads())
        out.append(nb::make_tuple(thread.process, thread.kernel_id, thread.events));
    return out;
}

}  // namespace

NB_MODULE(_core, m) {
    nb::class_<PyTrace> type(m, "Trace",
                             "Trace files: what is in them, and the events as columns that share the reader's memory.");
    for_each_column([&]<typename T>(const char* name, std::vector<T> format::Events::* member) {
        type.def_prop_ro(name, [member](PyTrace& self) { return column(self.events(), *self.events().*member); });
    });
    type.def_prop_ro("processes", processes)
        .def_prop_ro("notes", notes)
        .def_prop_ro("verdicts", verdicts)
        .def_prop_ro("engine_work", engine_work)
        .def_prop_ro("weighed_calls", weighed_calls)
        .def_prop_ro("chosen_files", chosen_files)
        .def_prop_ro("modules", modules)
        .def_prop_ro("clocks", clocks)
        .def_prop_ro("sites", sites)
        .def_prop_ro("threads", threads)
        .def_prop_ro("event_count", [](const PyTrace& self) { return self.files()->event_count(); })
        .def("last_end_ns", &last_end_ns)
        .def_prop_ro("paths", [](const PyTrace& self) { return self.about().paths; })
        .def_prop_ro("hosts", [](const PyTrace& self) { return self.about().hosts; })
        .def_prop_ro("damage", [](const PyTrace& self) { return self.about().damage; })
        .def_prop_ro("left_out_chunks", [](const PyTrace& self) { return self.about().left_out_chunks; })
        .def_prop_ro("left_out_records", [](const PyTrace& self) { return self.about().left_out_records; })
        .def_prop_ro("dropped", [](const PyTrace& self) { return self.about().dropped; })
        .def_prop_ro("disabled_processes", [](const PyTrace& self) { return self.about().disabled_processes; })
        .def_prop_ro("epoch_ns", [](const PyTrace& self) { return self.about().epoch_ns; })
        .def_prop_ro("version", [](const PyTrace& self) { return self.about().version; });
    m.def(
        "read_traces",
        [](const std::vector<std::string>& files, std::optional<std::pair<std::int64_t, std::int64_t>> span_ns,
           const std::vector<std::string>& shown) {
            return read_trace(files, shown,
                              span_ns ? format::RunSpan{span_ns->first, span_ns->second} : format::RunSpan{});
        },
        nb::arg("files"), nb::arg("span_ns") = nb::none(), nb::arg("shown") = std::vector<std::string>{},
        "Reads the trace files of the nodes of one run. `span_ns`: when the run began and ended, nanoseconds since "
        "1970 by the run's clock. `shown`: what messages call the files, where that is not their names. Raises "
        "ValueError when one is no trace file.");
    m.def(
        "read_trace", [](const std::string& file) { return read_trace({file}, {}, {}); }, nb::arg("file"),
        "One trace file.");
    m.def("functions", &functions,
          "Every function that is intercepted: id, name, layer, op, collective, completes, symbols.");
    m.attr("engine_figures") = engine_figures();
    m.attr("origin_names") = nb::make_tuple("application", "mpi_library", "engine");
    bind_analysis(m);
    bind_calls(m);
    bind_requests(m, type);
    bind_writer(m);
    bind_planner(m);
    bind_kernels(m);
    bind_explain(m);
    bind_container(m);
    bind_probe(m);
    bind_partition(m);
    bind_sim(m);
}
