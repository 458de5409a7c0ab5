// Sums of a trace, and its events in batches by time.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <tuple>

#include "analysis/nesting.hpp"
#include "analysis/summary.hpp"
#include "bindings/columns.hpp"
#include "bindings/text.hpp"
#include "bindings/trace.hpp"

namespace nb = nanobind;

namespace ioweir {
namespace {

nb::list rows(const analysis::Table& table) {
    nb::list out;
    for (const analysis::Row& row : table.rows()) {
        nb::list sizes;
        for (const auto& bin : row.sizes.bins())
            sizes.append(nb::make_tuple(bin.number, bin.calls, bin.least, bin.most));
        out.append(nb::make_tuple(row.group, row.slot, row.calls, row.failed, row.bytes, row.time_ns, row.span.length(),
                                  row.longest_ns, row.longest_start_ns, row.longest_unit, row.longest_file, sizes,
                                  row.behind_ns));
    }
    return out;
}

nb::tuple tuple_of(const analysis::Amount& amount) {
    return nb::make_tuple(amount.calls, amount.bytes, amount.time_ns);
}

nb::tuple tuple_of(std::uint32_t unit, const analysis::Waited& waited) {
    return nb::make_tuple(unit, waited.wait_ns, waited.held_ns, waited.last, waited.meetings);
}

nb::list list_of(const std::vector<analysis::Amount>& amounts) {
    nb::list out;
    for (const analysis::Amount& amount : amounts) out.append(tuple_of(amount));
    return out;
}

/// Columns, so that many rows are few objects. Sizes: of all rows one after the other, with how many each row has.
nb::dict columns_of(const std::unordered_map<std::uint64_t, std::vector<analysis::Cell>>& all) {
    std::vector<const analysis::Cell*> cells;
    for (const auto& [place, some] : all)
        for (const analysis::Cell& cell : some) cells.push_back(&cell);
    std::sort(cells.begin(), cells.end(), [](const analysis::Cell* a, const analysis::Cell* b) {
        return std::tie(a->file, a->unit, a->slot, a->outermost) < std::tie(b->file, b->unit, b->slot, b->outermost);
    });
    nb::dict out;
    const auto column = [&](const char* name, auto of) {
        nb::list values;
        for (const analysis::Cell* cell : cells) values.append(of(*cell));
        out[name] = values;
    };
    column("slot", [](const analysis::Cell& cell) { return cell.slot; });
    column("file", [](const analysis::Cell& cell) { return cell.file; });
    column("unit", [](const analysis::Cell& cell) { return cell.unit; });
    column("outermost", [](const analysis::Cell& cell) { return cell.outermost ? 1 : 0; });
    column("calls", [](const analysis::Cell& cell) { return cell.calls; });
    column("failed", [](const analysis::Cell& cell) { return cell.failed; });
    column("bytes", [](const analysis::Cell& cell) { return cell.bytes; });
    column("time_ns", [](const analysis::Cell& cell) { return cell.time_ns; });
    column("longest_ns", [](const analysis::Cell& cell) { return cell.longest_ns; });
    column("first_ns", [](const analysis::Cell& cell) { return cell.first_ns; });
    column("last_ns", [](const analysis::Cell& cell) { return cell.last_ns; });
    nb::list counts, least, calls;
    for (const analysis::Cell* cell : cells) {
        const auto bins = cell->sizes.bins();
        counts.append(bins.size());
        for (const auto& bin : bins) {
            least.append(bin.number == 0 ? 0 : std::uint64_t{1} << (bin.number - 1));
            calls.append(bin.calls);
        }
    }
    out["size_bins"] = counts;
    out["size_least"] = least;
    out["size_calls"] = calls;
    return out;
}

nb::dict to_python(const analysis::Summary& summary) {
    nb::dict out;
    out["job"] = rows(summary.job);
    out["by_file"] = rows(summary.by_file);
    out["by_unit"] = rows(summary.by_unit);
    out["by_site"] = rows(summary.by_site);
    nb::list errors;
    for (const auto& [key, calls] : summary.errors) errors.append(nb::make_tuple(key.first, key.second, calls));
    out["errors"] = errors;
    out["unreported"] = summary.unreported;
    nb::list less;
    for (std::size_t slot = 0; slot < summary.less.size(); ++slot)
        if (const analysis::Less& sum = summary.less[slot]; sum.calls != 0)
            less.append(nb::make_tuple(slot, sum.calls, sum.continued, sum.missing));
    out["less"] = less;
    out["unreported_less"] = summary.unreported_less;
    out["events"] = summary.events;
    out["counted"] = summary.counted;
    nb::list unit_io;
    for (const analysis::Union& io : summary.unit_io) unit_io.append(io.length());
    out["unit_io_ns"] = unit_io;
    out["outermost"] = list_of(summary.outermost);
    nb::list inside;
    for (std::size_t outer = 0; outer < summary.inside.size(); ++outer)
        for (std::size_t slot = 0; slot < summary.inside[outer].size(); ++slot)
            if (const analysis::Amount& amount = summary.inside[outer][slot]; amount.calls != 0 || amount.time_ns != 0)
                inside.append(nb::make_tuple(outer, slot, amount.calls, amount.bytes, amount.time_ns));
    out["inside"] = inside;
    nb::list origins;
    for (const auto& ops : summary.origins) origins.append(list_of(ops));
    out["origins"] = origins;
    out["parts"] = summary.parts;
    out["behind"] = summary.behind;
    nb::list waited;
    for (const auto& [unit, sum] : summary.waited) waited.append(tuple_of(unit, sum));
    out["waited"] = waited;
    nb::list waited_by_slot;
    for (const auto& [unit, slot, sum] : summary.waited_by_slot)
        waited_by_slot.append(nb::make_tuple(slot, tuple_of(unit, sum)));
    out["waited_by_slot"] = waited_by_slot;
    nb::dict file_parts;
    for (const auto& [file, parts] : summary.file_parts) file_parts[nb::int_(file)] = parts;
    out["file_parts"] = file_parts;
    nb::dict collective;
    for (const auto& [unit, amounts] : summary.collective) collective[nb::int_(unit)] = list_of(amounts);
    out["collective"] = collective;
    out["cells"] = columns_of(summary.cells);
    out["by_process"] = list_of(summary.by_process);
    nb::dict late_ends;
    for (const auto& [file, calls] : summary.late_ends) late_ends[nb::int_(file)] = calls;
    out["late_ends"] = late_ends;
    out["runtime"] = tuple_of(summary.runtime);
    out["runtime_files"] = summary.runtime_files;
    out["verification"] = tuple_of(summary.verification);
    out["last_end_ns"] = summary.events != 0 ? nb::cast(summary.last_end_ns) : nb::none();
    return out;
}

/// Sums that another thread may watch growing.
class PySummary {
public:
    PySummary(const PyTrace& trace, analysis::Question question)
        : files_(trace.files()), question_(std::move(question)) {}
    PySummary(const PySummary&) = delete;
    PySummary& operator=(const PySummary&) = delete;
    ~PySummary() = default;
    [[nodiscard]] std::uint64_t done() const { return watch_.done.load(std::memory_order_relaxed); }
    void stop() { watch_.stop = true; }
    nb::dict run() {
        Result<analysis::Summary> summary = Error{};
        {
            const nb::gil_scoped_release release;
            summary = analysis::summarise(*files_, question_, watch_);
        }
        if (!summary) ioweir::raise_value_error(summary.error().message());
        return to_python(summary.value());
    }

private:
    std::shared_ptr<format::TraceFiles> files_;
    analysis::Question question_;
    analysis::Watch watch_;
};

/// All events by time, so many at once.
class PyBatches {
public:
    explicit PyBatches(const PyTrace& trace)
        : files_(trace.files()), kinds_(format::function_count), events_(*files_, kinds_, 0) {}
    PyBatches(const PyBatches&) = delete;  // events_ refers to kinds_
    PyBatches& operator=(const PyBatches&) = delete;
    ~PyBatches() = default;
    nb::object next(std::size_t count) {
        const auto batch = std::make_shared<format::Events>();
        {
            const nb::gil_scoped_release release;
            batch->reserve(std::min<std::uint64_t>(count, files_->event_count()));
            while (batch->start_ns.size() < count) {
                const analysis::NestedEvent* nested = events_.next();
                if (nested == nullptr) break;
                batch->push_back(nested->event, files_->threads()[nested->event.thread].process);
            }
        }
        if (batch->start_ns.empty()) return nb::none();
        nb::dict columns;
        for_each_column([&]<typename T>(const char* name, std::vector<T> format::Events::* member) {
            columns[name] = column(batch, (*batch).*member);
        });
        return columns;
    }

private:
    std::shared_ptr<format::TraceFiles> files_;
    std::vector<analysis::FunctionKind> kinds_;  ///< what encloses an event is not asked for
    analysis::MergedEvents events_;
};

}  // namespace

void bind_analysis(nb::module_& m) {
    nb::class_<PySummary>(m, "Summary", "The sums of a trace: run() makes them, done counts the events meanwhile.")
        .def(
            "__init__",
            [](PySummary* self, const PyTrace& trace, std::vector<std::string> layers, std::vector<std::string> ops,
               std::string mpi_layer, std::string posix_layer, std::vector<std::string> data_ops,
               std::vector<std::string> transfer_ops, std::string wait_layer, std::string close_op,
               std::vector<std::int32_t> unit_of_process, std::size_t units, std::vector<std::uint32_t> file_of_path,
               const std::vector<bool>& runtime_file, bool cells) {
                new (self) PySummary(trace, analysis::Question{{std::move(layers), std::move(ops)},
                                                               std::move(mpi_layer),
                                                               std::move(posix_layer),
                                                               std::move(data_ops),
                                                               std::move(transfer_ops),
                                                               std::move(wait_layer),
                                                               std::move(close_op),
                                                               std::move(unit_of_process),
                                                               units,
                                                               std::move(file_of_path),
                                                               {runtime_file.begin(), runtime_file.end()},
                                                               cells});
            },
            nb::arg("trace"), nb::kw_only(), nb::arg("layers"), nb::arg("ops"), nb::arg("mpi_layer"),
            nb::arg("posix_layer"), nb::arg("data_ops"), nb::arg("transfer_ops"), nb::arg("wait_layer"),
            nb::arg("close_op"), nb::arg("unit_of_process"), nb::arg("units"), nb::arg("file_of_path"),
            nb::arg("runtime_file"), nb::arg("cells") = false)
        .def_prop_ro("done", &PySummary::done)
        .def("stop", &PySummary::stop, "Makes run() in another thread raise soon.")
        .def("run", &PySummary::run);
    nb::class_<PyBatches>(m, "Batches", "A trace's events by time of entry, in batches of columns.")
        .def(nb::init<const PyTrace&>(), nb::arg("trace"))
        .def("next", &PyBatches::next, nb::arg("events"), "A dict of columns, None when there is nothing left.");
}

}  // namespace ioweir
