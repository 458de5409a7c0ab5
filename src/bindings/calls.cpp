// The table of a trace's counted calls as columns, and what some of the calls cost.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "analysis/blocks.hpp"
#include "analysis/call_table.hpp"
#include "analysis/prices.hpp"
#include "analysis/selections.hpp"
#include "bindings/columns.hpp"
#include "bindings/text.hpp"
#include "bindings/trace.hpp"

namespace nb = nanobind;

namespace ioweir {
namespace {

using analysis::CallTable;
using Mask = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using NumberArray = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::span<const std::int64_t> span_over(const NumberArray& array) { return {array.data(), array.size()}; }

void require_one_length(std::initializer_list<const NumberArray*> columns) {
    for (const NumberArray* column : columns)
        if (column->size() != (*columns.begin())->size()) throw nb::value_error("the columns are of one length");
}

/// Arrays that are given out keep the table alive.
class PyCalls {
public:
    PyCalls(const PyTrace& trace, const analysis::CallQuestion& question) {
        Result<CallTable> table = Error{};
        {
            const nb::gil_scoped_release release;
            table = analysis::read_calls(*trace.files(), question);
        }
        if (!table) ioweir::raise_value_error(table.error().message());
        table_ = std::make_shared<const CallTable>(table.take());
    }

    [[nodiscard]] nb::dict columns() const {
        const CallTable& table = *table_;
        nb::dict out;
        const auto numbers = [&](const char* name, const auto& values) { out[name] = column(table_, values); };
        const auto flags = [&](const char* name, const CallTable::Flags& values) {
            out[name] = flags_column(table_, values);
        };
        numbers("unit", table.unit);
        numbers("file", table.file);
        numbers("start", table.start);
        numbers("end", table.end);
        numbers("duration", table.duration);
        numbers("bytes", table.bytes);
        numbers("offset", table.offset);
        numbers("function", table.function);
        numbers("access", table.access);
        numbers("layer", table.layer);
        numbers("op", table.op);
        numbers("origin", table.origin);
        numbers("parent", table.parent);
        numbers("root", table.root);
        numbers("mpi", table.mpi);
        numbers("following", table.following);
        numbers("meeting", table.meeting);
        numbers("arrival_shift", table.arrival_shift);
        numbers("arrival", table.arrival);
        flags("collective", table.collective);
        flags("completes", table.completes);
        flags("failed", table.failed);
        flags("outermost", table.outermost);
        return out;
    }

    [[nodiscard]] nb::dict waits() const {
        nb::dict out;
        out["unit"] = column(table_, table_->waits.unit);
        out["function"] = column(table_, table_->waits.function);
        out["start"] = column(table_, table_->waits.start);
        out["end"] = column(table_, table_->waits.end);
        return out;
    }

    [[nodiscard]] nb::dict late() const {
        nb::dict out;
        out["unit"] = column(table_, table_->late.unit);
        out["before"] = column(table_, table_->late.before);
        out["arrival"] = column(table_, table_->late.arrival);
        out["file"] = column(table_, table_->late.file);
        out["ranks"] = column(table_, table_->late.ranks);
        return out;
    }

    [[nodiscard]] std::size_t stretches() const { return table_->stretches; }
    [[nodiscard]] double whole_over_rows() const { return table_->whole_over_rows; }

    [[nodiscard]] nb::tuple price(const Mask& mask, std::int64_t pause_ns) const {
        analysis::Price found = analysis::price(*table_, chosen(mask), pause_ns);
        return nb::make_tuple(found.ns, owned_column(std::move(found.by_unit_s)));
    }
    [[nodiscard]] nb::object busy_by_unit(const Mask& mask) const {
        return owned_column(analysis::busy_by_unit(*table_, chosen(mask)));
    }
    [[nodiscard]] std::int64_t span(const Mask& mask) const { return analysis::span_of(*table_, chosen(mask)); }

    [[nodiscard]] nb::object roots(const Mask& mask) const {
        return owned_flags(analysis::roots_of(*table_, chosen(mask)));
    }
    [[nodiscard]] nb::object mpi_around(const Mask& mask) const {
        return owned_flags(analysis::mpi_around(*table_, chosen(mask)));
    }
    [[nodiscard]] nb::object beneath(const Mask& mask) const {
        return owned_flags(analysis::beneath(*table_, chosen(mask)));
    }
    [[nodiscard]] nb::object made_by(const Mask& mask) const {
        return owned_flags(analysis::made_by(*table_, chosen(mask)));
    }
    [[nodiscard]] nb::object topmost(const Mask& mask) const {
        return owned_flags(analysis::topmost(*table_, chosen(mask)));
    }
    [[nodiscard]] nb::object count_inside(const Mask& mask) const {
        return owned_column(analysis::inside(*table_, chosen(mask), nullptr));
    }
    [[nodiscard]] nb::object bytes_inside(const Mask& mask) const {
        return owned_column(analysis::inside(*table_, chosen(mask), &table_->bytes));
    }
    [[nodiscard]] nb::object count_by_unit(const Mask& mask) const {
        return owned_column(analysis::count_by(table_->unit, table_->units, chosen(mask)));
    }
    [[nodiscard]] nb::object count_by_file(const Mask& mask) const {
        return owned_column(analysis::count_by(table_->file, table_->files, chosen(mask)));
    }
    [[nodiscard]] nb::object bytes_by_unit(const Mask& mask) const {
        return owned_column(analysis::sum_by(table_->unit, table_->units, chosen(mask), table_->bytes));
    }
    [[nodiscard]] nb::object time_by_unit(const Mask& mask) const {
        return owned_column(analysis::sum_by(table_->unit, table_->units, chosen(mask), table_->duration));
    }
    [[nodiscard]] nb::object time_by_file(const Mask& mask) const {
        return owned_column(analysis::sum_by(table_->file, table_->files, chosen(mask), table_->duration));
    }
    [[nodiscard]] nb::object jumps(const Mask& mask, const NumberArray& order, const NumberArray& position) const {
        if (order.size() != table_->size() || position.size() != table_->size())
            throw nb::value_error("order and position have one entry a call");
        for (const std::int64_t row : span_over(order))
            if (row < 0 || static_cast<std::size_t>(row) >= table_->size()) throw nb::value_error("no such call");
        return owned_flags(analysis::jumps(*table_, chosen(mask), span_over(order), span_over(position)));
    }
    [[nodiscard]] nb::object by_unit_and_file() const { return owned_column(analysis::by_unit_and_file(*table_)); }
    [[nodiscard]] nb::object positions() const { return owned_column(analysis::positions(*table_)); }

private:
    [[nodiscard]] analysis::Chosen chosen(const Mask& mask) const {
        if (mask.size() != table_->size()) throw nb::value_error("a mask has one entry a call");
        return {reinterpret_cast<const std::uint8_t*>(mask.data()), mask.size()};
    }

    std::shared_ptr<const CallTable> table_;
};

}  // namespace

void bind_calls(nb::module_& m) {
    nb::class_<PyCalls>(m, "Calls", "The counted calls of a trace, one row a call, and what some of them cost.")
        .def(
            "__init__",
            [](PyCalls* self, const PyTrace& trace, std::vector<std::string> layers, std::vector<std::string> ops,
               std::string mpi_layer, std::string posix_layer, std::string wait_layer,
               std::vector<std::string> data_ops, std::string open_op, std::string seek_op,
               std::vector<std::int32_t> unit_of_process, std::size_t units, std::size_t unit_count,
               std::vector<std::uint32_t> file_of_path, const std::vector<bool>& runtime_file, std::uint64_t most) {
                new (self) PyCalls(trace, analysis::CallQuestion{{std::move(layers), std::move(ops)},
                                                                 std::move(mpi_layer),
                                                                 std::move(posix_layer),
                                                                 std::move(wait_layer),
                                                                 std::move(data_ops),
                                                                 std::move(open_op),
                                                                 std::move(seek_op),
                                                                 std::move(unit_of_process),
                                                                 units,
                                                                 unit_count,
                                                                 std::move(file_of_path),
                                                                 {runtime_file.begin(), runtime_file.end()},
                                                                 most});
            },
            nb::arg("trace"), nb::kw_only(), nb::arg("layers"), nb::arg("ops"), nb::arg("mpi_layer"),
            nb::arg("posix_layer"), nb::arg("wait_layer"), nb::arg("data_ops"), nb::arg("open_op"), nb::arg("seek_op"),
            nb::arg("unit_of_process"), nb::arg("units"), nb::arg("unit_count"), nb::arg("file_of_path"),
            nb::arg("runtime_file"), nb::arg("most") = 0)
        .def_prop_ro("columns", &PyCalls::columns, "A dict of columns, one entry a call.")
        .def_prop_ro("waits", &PyCalls::waits, "The same of long calls of MPI outside of I/O.")
        .def_prop_ro("late", &PyCalls::late, "The same of collective calls in which units waited for the last one.")
        .def_prop_ro("stretches", &PyCalls::stretches,
                     "In how many stretches of the run the calls lie; 0: they are all calls of the run.")
        .def_prop_ro("whole_over_rows", &PyCalls::whole_over_rows,
                     "Time in outermost calls of the run over that in those of the stretches.")
        .def("price", &PyCalls::price, nb::arg("mask"), nb::arg("pause_ns") = 0,
             "Nanoseconds of the chosen calls on the critical path, and seconds of it by the unit that spent them.")
        .def("busy_by_unit", &PyCalls::busy_by_unit, nb::arg("mask"), "Nanoseconds that each unit spent in them.")
        .def("span", &PyCalls::span, nb::arg("mask"), "Nanoseconds in which any unit was in one of them.")
        .def("roots", &PyCalls::roots, nb::arg("mask"), "The outermost calls around them.")
        .def("mpi_around", &PyCalls::mpi_around, nb::arg("mask"), "The MPI-IO calls right around them.")
        .def("beneath", &PyCalls::beneath, nb::arg("mask"), "All calls whose outermost call is chosen.")
        .def("made_by", &PyCalls::made_by, nb::arg("mask"), "All calls right around which a chosen MPI-IO call lies.")
        .def("topmost", &PyCalls::topmost, nb::arg("mask"), "Those of them that no other one lies around.")
        .def("count_inside", &PyCalls::count_inside, nb::arg("mask"), "Of each MPI-IO call how many of them it made.")
        .def("bytes_inside", &PyCalls::bytes_inside, nb::arg("mask"), "Of each MPI-IO call what those it made moved.")
        .def("count_by_unit", &PyCalls::count_by_unit, nb::arg("mask"))
        .def("count_by_file", &PyCalls::count_by_file, nb::arg("mask"))
        .def("bytes_by_unit", &PyCalls::bytes_by_unit, nb::arg("mask"))
        .def("time_by_unit", &PyCalls::time_by_unit, nb::arg("mask"), "Nanoseconds, waiting for other units included.")
        .def("time_by_file", &PyCalls::time_by_file, nb::arg("mask"))
        .def("jumps", &PyCalls::jumps, nb::arg("mask"), nb::arg("order"), nb::arg("position"),
             "Those of them that neither go on where the last one ended, nor keep its stride.")
        .def("by_unit_and_file", &PyCalls::by_unit_and_file, "All rows in this order, and then by start.")
        .def("positions", &PyCalls::positions, "Where in its file each read or write began; -1: not known.");
    m.def(
        "sharers",
        [](const NumberArray& file, const NumberArray& block, const NumberArray& unit) {
            require_one_length({&file, &block, &unit});
            return owned_column(analysis::sharers(span_over(file), span_over(block), span_over(unit)));
        },
        nb::arg("file"), nb::arg("block"), nb::arg("unit"), "Of each entry how many units have entries of its block.");
    m.def(
        "changed_hands",
        [](const NumberArray& file, const NumberArray& first, const NumberArray& last, const NumberArray& unit,
           const NumberArray& start) {
            require_one_length({&file, &first, &last, &unit, &start});
            return owned_flags(analysis::changed_hands(
                {span_over(file), span_over(first), span_over(last), span_over(unit), span_over(start)}));
        },
        nb::arg("file"), nb::arg("first"), nb::arg("last"), nb::arg("unit"), nb::arg("start"),
        "Of calls by their starts whether another unit was the last one in their first or last block.");
    m.def(
        "different_bytes",
        [](const NumberArray& group, const NumberArray& begin, const NumberArray& stop, std::size_t groups) {
            require_one_length({&group, &begin, &stop});
            for (const std::int64_t one : span_over(group))
                if (one < 0 || static_cast<std::size_t>(one) >= groups) throw nb::value_error("no such group");
            return owned_column(analysis::different_bytes(span_over(group), span_over(begin), span_over(stop), groups));
        },
        nb::arg("group"), nb::arg("begin"), nb::arg("stop"), nb::arg("groups"),
        "Of each group of stretches how many different bytes they have.");
}

}  // namespace ioweir
