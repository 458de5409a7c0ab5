#include "analysis/summary.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "analysis/begun.hpp"

namespace ioweir::analysis {

namespace codec = format::codec;

namespace {

constexpr std::uint64_t tell_every = 1 << 16;  ///< events between two looks at the Watch
constexpr std::size_t origin_count = 4;        ///< records.toml's three, and what newer traces may have

}  // namespace

void SizeHistogram::add(std::uint64_t bytes) {
    const auto number = static_cast<std::uint32_t>(std::bit_width(bytes));
    for (std::size_t i = 0; i < bins_.size(); ++i) {
        if (bins_[i].number != number) continue;
        ++bins_[i].calls;
        bins_[i].least = std::min(bins_[i].least, bytes);
        bins_[i].most = std::max(bins_[i].most, bytes);
        if (i != 0) std::swap(bins_[i], bins_[0]);
        return;
    }
    bins_.push_back(Bin{number, 1, bytes, bytes});
}

std::vector<SizeHistogram::Bin> SizeHistogram::bins() const {
    std::vector<Bin> sorted = bins_;
    std::sort(sorted.begin(), sorted.end(), [](const Bin& a, const Bin& b) { return a.number < b.number; });
    return sorted;
}

Row& Table::row(std::uint32_t group, std::uint32_t slot) {
    std::vector<std::uint32_t>& places = index_[group];
    if (places.empty()) places.resize(slots_);
    if (places[slot] == 0) {
        rows_.emplace_back();
        rows_.back().group = group;
        rows_.back().slot = slot;
        places[slot] = static_cast<std::uint32_t>(rows_.size());
    }
    return rows_[places[slot] - 1];
}

namespace {

/// Adds events to a Summary, one at a time.
class Adder {
public:
    Adder(const format::TraceFiles& files, const Question& question, const std::vector<FunctionKind>& kinds,
          Summary& summary)
        : files_(files),
          question_(question),
          kinds_(kinds),
          summary_(summary),
          ops_(question.names.ops.size()),
          mpi_(Vocabulary::position(question.names.layers, question.mpi_layer)),
          posix_(Vocabulary::position(question.names.layers, question.posix_layer)),
          wait_(Vocabulary::position(question.names.layers, question.wait_layer)),
          close_(Vocabulary::position(question.names.ops, question.close_op)),
          begun_(files, kinds, posix_),
          meetings_(files.threads().size()),
          data_of_op_(ops_, -1),
          transfers_(ops_),
          runtime_seen_(question.runtime_file.size()) {
        for (std::size_t i = 0; i < question.data_ops.size(); ++i)
            data_of_op_[Vocabulary::position(question.names.ops, question.data_ops[i])] = static_cast<int>(i);
        for (const std::string& op : question.transfer_ops)
            transfers_[Vocabulary::position(question.names.ops, op)] = true;
        summary.unit_io.resize(question.units);
        summary.outermost.resize(question.names.slots());
        summary.inside.assign(question.names.slots(), std::vector<Amount>(question.names.slots()));
        summary.origins.assign(origin_count, std::vector<Amount>(ops_));
        summary.parts.assign(question.data_ops.size(), std::vector<std::int64_t>(ops_));
        summary.behind.resize(question.data_ops.size());
        summary.unreported.resize(question.data_ops.size());
        summary.less.resize(question.names.slots());
        summary.unreported_less.resize(question.data_ops.size());
        short_.resize(files.threads().size());
        summary.by_process.resize(files.about().processes.size());
    }

    void add(const NestedEvent& nested) {
        const format::Event& event = nested.event;
        const FunctionKind& kind = kinds_[event.function];
        const std::uint32_t process = files_.threads()[event.thread].process;
        const int data = data_of_op_[kind.op];
        const std::int64_t time_ns = std::max<std::int64_t>(event.duration_ns, 0);
        const std::int64_t end_ns = codec::sum(event.start_ns, time_ns);
        const auto moved =
            static_cast<std::uint64_t>(data >= 0 && event.bytes > 0 && !kind.completes ? event.bytes : 0);
        ++summary_.events;
        summary_.last_end_ns = std::max(summary_.last_end_ns, end_ns);
        Amount& of_process = summary_.by_process[process];
        ++of_process.calls;
        of_process.bytes += moved;
        add_time(of_process.time_ns, time_ns);
        const std::int32_t unit = question_.unit_of_process[process];
        if (unit < 0 || event.origin >= static_cast<std::uint8_t>(origin_tracer)) return;
        const std::uint32_t file = question_.file_of_path[event.path];
        const Amount amount{kind.completes ? 0U : 1U, moved, time_ns};
        if (question_.runtime_file[file] != 0) {
            add_to(summary_.runtime, Amount{1, moved, time_ns});
            summary_.runtime_files += runtime_seen_[file] == 0;
            runtime_seen_[file] = 1;
            return;
        }
        const FunctionKind* mpi_call = nested.mpi_function != 0 ? &kinds_[nested.mpi_function] : nullptr;
        // What --verify reads back is I/O of neither program nor plan.
        if (mpi_call != nullptr && data >= 0 && is_engine_read(event, kind) && is_verified_in(nested, *mpi_call)) {
            add_to(summary_.verification, Amount{1, moved, time_ns});
            return;
        }
        if ((nested.layers_around >> kind.layer & 1) != 0) return;  // inside a call of its own layer
        ++summary_.counted;
        if (kind.layer == wait_) {
            add_waiting(nested, kind, static_cast<std::uint32_t>(unit));
            return;
        }
        if (kind.late) ++summary_.late_ends[file];
        const auto slot = static_cast<std::uint32_t>(kind.layer * ops_ + kind.op);
        const auto of_unit = static_cast<std::uint32_t>(unit);
        if (event.failed) ++summary_.errors[{slot, event.error}];
        const Took took = time_of(nested, kind, time_ns, end_ns);
        add_to(summary_.job.row(0, slot), event, took, kind, data, moved, of_unit, file);
        add_to(summary_.by_file.row(file, slot), event, took, kind, data, moved, of_unit, file);
        add_to(summary_.by_unit.row(of_unit, slot), event, took, kind, data, moved, of_unit, file);
        if (question_.cells)
            add_to_cell(cell_of(file, of_unit, slot, nested.outermost()), event, kind, took, moved, data);
        if (event.site != 0)
            add_to(summary_.by_site.row(event.site, slot), event, took, kind, data, moved, of_unit, file);
        if (data >= 0) look_for_rest(nested, kind, slot);
        if (nested.outermost()) {
            add_to(summary_.outermost[slot], amount);
            summary_.unit_io[of_unit].add(event.start_ns, end_ns);
        }
        if (kind.layer == mpi_ && kind.collective && !kind.completes) {
            const FunctionKind& outer = nested.outermost() ? kind : kinds_[nested.outer_function];
            const std::uint32_t ranks = event.access != 0 ? files_.about().accesses[event.access].ranks : 0;
            meetings_.arrive(
                event.thread, file, ranks,
                {of_unit, slot, static_cast<std::uint32_t>(outer.layer * ops_ + outer.op), event.start_ns, end_ns});
        }
        if (kind.layer == posix_ && data >= 0 && moved > 0 && mpi_call != nullptr && mpi_call->collective &&
            data_of_op_[mpi_call->op] >= 0)
            meetings_.moves_data(event.thread, event.start_ns);
        const Amount within{amount.calls, amount.bytes, took.within_ns};
        if (std::has_single_bit(nested.layers_around)) {
            const FunctionKind& outer = kinds_[nested.outer_function];
            add_to(summary_.inside[outer.layer * ops_ + outer.op][slot], within);
        }
        if (kind.layer == posix_)
            add_storage(nested, kind, mpi_call, within, codec::difference(took.within_ns, took.own_ns), of_unit);
    }

    /// When all events have been added.
    void finish() {
        meetings_.finish();
        summary_.waited.assign(meetings_.by_unit().begin(), meetings_.by_unit().end());
        for (const auto& [key, waited] : meetings_.by_slot())
            summary_.waited_by_slot.emplace_back(key.first, key.second, waited);
    }

private:
    /// How long a call took, with what it began.
    struct Took {
        std::int64_t own_ns;     ///< from entry to return; 0 where it lies within the time of a request
        std::int64_t busy_ns;    ///< with the time of the request that no other request of the thread covers
        std::int64_t within_ns;  ///< of it, within the MPI-IO call around
        std::int64_t end_ns;     ///< of call and request
    };
    Took time_of(const NestedEvent& nested, const FunctionKind& kind, std::int64_t time_ns, std::int64_t end_ns) {
        const format::Event& event = nested.event;
        if (kind.layer != posix_ || (!kind.begins && !kind.completes)) return {time_ns, time_ns, time_ns, end_ns};
        if (kind.completes) {
            const std::int64_t own_ns = !kind.late && begun_.is_counted(event) ? 0 : time_ns;
            return {own_ns, own_ns, own_ns, end_ns};
        }
        const std::int64_t until_ns = event.failed ? end_ns : begun_.end_of(event, end_ns);
        std::int64_t& reached = begun_.reached(event.thread);
        const std::int64_t from_ns = std::max(end_ns, reached);
        const auto beyond = [&](std::int64_t stop_ns) {
            return codec::sum(time_ns, std::max<std::int64_t>(codec::difference(stop_ns, from_ns), 0));
        };
        const std::int64_t in_call_ns = nested.mpi_function != 0 ? std::min(until_ns, nested.mpi_end_ns) : until_ns;
        const Took took{time_ns, beyond(until_ns), beyond(in_call_ns), until_ns};
        reached = std::max(reached, until_ns);
        return took;
    }
    /// Waiting for other ranks: no I/O, of no file.
    void add_waiting(const NestedEvent& nested, const FunctionKind& kind, std::uint32_t of_unit) {
        const format::Event& event = nested.event;
        const auto slot = static_cast<std::uint32_t>(kind.layer * ops_ + kind.op);
        const std::int64_t time_ns = std::max<std::int64_t>(event.duration_ns, 0);
        const Took took{time_ns, time_ns, time_ns, codec::sum(event.start_ns, time_ns)};
        const std::uint32_t file = question_.file_of_path[event.path];
        add_to(summary_.job.row(0, slot), event, took, kind, -1, 0, of_unit, file);
        add_to(summary_.by_unit.row(of_unit, slot), event, took, kind, -1, 0, of_unit, file);
        // Called an inner call: what is outermost is I/O.
        if (question_.cells) add_to_cell(cell_of(file, of_unit, slot, false), event, kind, took, 0, -1);
        if (!std::has_single_bit(nested.layers_around)) return;
        const FunctionKind& outer = kinds_[nested.outer_function];
        add_to(summary_.inside[outer.layer * ops_ + outer.op][slot], Amount{1, 0, time_ns});
    }

    /// What a POSIX call is of the MPI-IO call around it. `behind_ns`: of its time, in which the thread did something else.
    void add_storage(const NestedEvent& nested, const FunctionKind& kind, const FunctionKind* mpi_call,
                     const Amount& amount, std::int64_t behind_ns, std::uint32_t of_unit) {
        const format::Event& event = nested.event;
        const int data = data_of_op_[kind.op];
        add_to(summary_.origins[std::min<std::size_t>(event.origin, origin_count - 1)][kind.op], amount);
        if (mpi_call == nullptr) return;
        const int call_kind = data_of_op_[mpi_call->op];
        if (event.failed && !nested.mpi_failed && data >= 0 && data == call_kind &&
            event.origin == origin_mpi_library && event.error != EINTR && event.error != EAGAIN)
            ++summary_.unreported[static_cast<std::size_t>(data)];
        if (call_kind >= 0) {
            const auto part = static_cast<std::size_t>(call_kind);
            add_time(summary_.parts[part][kind.op], amount.time_ns);
            add_time(summary_.behind[part], behind_ns);
            std::vector<std::vector<std::int64_t>>& of_file =
                summary_.file_parts[question_.file_of_path[nested.mpi_path]];
            if (of_file.empty()) of_file = std::vector(summary_.parts.size(), std::vector<std::int64_t>(ops_));
            add_time(of_file[part][kind.op], amount.time_ns);
        }
        if (mpi_call->collective && transfers_[mpi_call->op] && data >= 0) {
            std::vector<Amount>& of_rank = summary_.collective[of_unit];
            of_rank.resize(question_.data_ops.size());
            add_to(of_rank[static_cast<std::size_t>(data)], amount);
        }
    }

    /// A short call with which nobody has gone on so far.
    struct Short {
        std::uint32_t slot;
        std::uint32_t path;
        std::int64_t end;  ///< where it ended; -1: not known
        std::uint64_t missing;
        int unreported;  ///< operation of Summary::unreported_less that it is among; -1: none
    };
    static constexpr std::size_t most_short = 64;  ///< of a thread, that are remembered
    static constexpr int origin_mpi_library = 1;
    static constexpr int origin_tracer = 3;

    /// Times of a damaged trace may be so long that their sum wraps around; it is wrong then, and defined.
    static void add_time(std::int64_t& sum, std::int64_t time_ns) { sum = codec::sum(sum, time_ns); }
    static void add_to(Amount& sum, const Amount& amount) {
        sum.calls += amount.calls;
        sum.bytes += amount.bytes;
        add_time(sum.time_ns, amount.time_ns);
    }
    static void add_to(Row& row, const format::Event& event, const Took& took, const FunctionKind& kind, int data,
                       std::uint64_t moved, std::uint32_t unit, std::uint32_t file) {
        const std::int64_t time_ns = std::max<std::int64_t>(codec::difference(took.end_ns, event.start_ns), 0);
        row.calls += kind.completes ? 0 : 1;
        row.failed += event.failed ? 1 : 0;
        row.bytes += moved;
        add_time(row.time_ns, took.busy_ns);
        add_time(row.behind_ns, codec::difference(took.busy_ns, took.own_ns));
        row.span.add(event.start_ns, took.end_ns);
        if (time_ns > row.longest_ns) {
            row.longest_ns = time_ns;
            row.longest_start_ns = event.start_ns;
            row.longest_unit = unit;
            row.longest_file = file;
        }
        if (data >= 0 && !kind.completes) row.sizes.add(moved);
    }
    Cell& cell_of(std::uint32_t file, std::uint32_t unit, std::uint32_t slot, bool outermost) {
        std::vector<Cell>& cells = summary_.cells[std::uint64_t{file} << 32 | unit];
        for (Cell& cell : cells)
            if (cell.slot == slot && cell.outermost == outermost) return cell;
        Cell& cell = cells.emplace_back();
        cell.slot = slot;
        cell.file = file;
        cell.unit = unit;
        cell.outermost = outermost;
        return cell;
    }
    static void add_to_cell(Cell& cell, const format::Event& event, const FunctionKind& kind, const Took& took,
                            std::uint64_t moved, int data) {
        cell.calls += kind.completes ? 0 : 1;
        cell.failed += event.failed ? 1 : 0;
        cell.bytes += moved;
        add_time(cell.time_ns, took.busy_ns);
        cell.longest_ns = std::max(cell.longest_ns, codec::difference(took.end_ns, event.start_ns));
        cell.first_ns = std::min(cell.first_ns, event.start_ns);
        cell.last_ns = std::max(cell.last_ns, took.end_ns);
        if (data >= 0 && !kind.completes) cell.sizes.add(moved);
    }
    /// A short call, or what goes on with the one before. What MPI-IO calls return of short ones beneath is looked at, too.
    void look_for_rest(const NestedEvent& nested, const FunctionKind& kind, std::uint32_t slot) {
        const format::Event& event = nested.event;
        std::vector<Short>& open = short_[event.thread];
        if (open.empty() && event.missing == 0) return;
        const auto goes_on = [&](const Short& before) {
            return before.slot == slot && before.path == event.path && !event.failed && event.bytes > 0 &&
                   (before.end < 0 || event.offset < 0 || before.end == event.offset);
        };
        if (const auto before = std::find_if(open.begin(), open.end(), goes_on); before != open.end()) {
            settle(*before, true);
            open.erase(before);
        }
        if (event.missing == 0) return;
        ++summary_.less[slot].calls;
        const int data = data_of_op_[kind.op];
        const bool unreported = kind.layer == posix_ && nested.mpi_function != 0 && !nested.mpi_failed &&
                                !nested.mpi_less && event.origin == origin_mpi_library &&
                                data_of_op_[kinds_[nested.mpi_function].op] == data;
        const Short less{slot, event.path, event.offset < 0 ? -1 : codec::sum(event.offset, event.bytes), event.missing,
                         unreported ? data : -1};
        settle(less, false);
        if (open.size() < most_short) open.push_back(less);
    }
    /// Adds a short call to those whose rest is missing; takes it away again where the rest was moved.
    void settle(const Short& less, bool continued) {
        Less& sum = summary_.less[less.slot];
        sum.continued += continued ? 1 : 0;
        sum.missing += continued ? 0 - less.missing : less.missing;
        if (less.unreported < 0) return;
        std::uint64_t& unreported = summary_.unreported_less[static_cast<std::size_t>(less.unreported)];
        unreported += continued ? std::uint64_t{0} - 1 : 1;
    }
    /// The engine reads nothing else in a close; of the file that it writes neither.
    [[nodiscard]] bool is_verified_in(const NestedEvent& nested, const FunctionKind& mpi_call) const {
        return mpi_call.op == close_ ||
               (close_ < ops_ && question_.names.ops[mpi_call.op] == "write" &&
                question_.file_of_path[nested.event.path] == question_.file_of_path[nested.mpi_path]);
    }
    [[nodiscard]] bool is_engine_read(const format::Event& event, const FunctionKind& kind) const {
        return event.origin == static_cast<std::uint8_t>(format::Origin::engine) &&
               question_.names.ops[kind.op] == "read";
    }

    const format::TraceFiles& files_;
    const Question& question_;
    const std::vector<FunctionKind>& kinds_;
    Summary& summary_;
    std::size_t ops_;
    std::size_t mpi_, posix_, wait_, close_;
    Begun begun_;
    Meetings meetings_;
    std::vector<int> data_of_op_;  ///< position in Question::data_ops, -1: moves no bytes
    std::vector<bool> transfers_;  ///< by operation
    std::vector<std::uint8_t> runtime_seen_;
    std::vector<std::vector<Short>> short_;  ///< by thread
};

}  // namespace

Result<Summary> summarise(const format::TraceFiles& files, const Question& question, Watch& watch) {
    auto kinds = question.names.kinds();
    if (!kinds) return kinds.error();
    const format::Trace& about = files.about();
    for (const std::vector<std::string>& ops : {question.data_ops, question.transfer_ops, {question.close_op}})
        for (const std::string& op : ops)
            if (!op.empty() && Vocabulary::position(question.names.ops, op) == question.names.ops.size())
                return Error{"unknown operation", op, ""};
    if (question.unit_of_process.size() != about.processes.size() || question.file_of_path.size() != about.paths.size())
        return Error{"the question does not fit the trace", "units or files", "one entry a process and a path"};
    for (const std::int32_t unit : question.unit_of_process)
        if (unit >= static_cast<std::int64_t>(question.units)) return Error{"no such unit", std::to_string(unit), ""};
    for (const std::uint32_t file : question.file_of_path)
        if (file >= question.runtime_file.size()) return Error{"no such file", std::to_string(file), ""};
    Summary summary(question.runtime_file.size(), question.units, about.sites.size(), question.names.slots());
    Adder adder(files, question, kinds.value(), summary);
    MergedEvents events(files, kinds.value(),
                        static_cast<std::uint8_t>(Vocabulary::position(question.names.layers, question.mpi_layer)));
    while (const NestedEvent* event = events.next()) {
        adder.add(*event);
        if (summary.events % tell_every != 0) continue;
        watch.done.store(summary.events, std::memory_order_relaxed);
        if (watch.stop.load(std::memory_order_relaxed)) return Error{"stopped", "", ""};
    }
    adder.finish();
    return summary;
}

}  // namespace ioweir::analysis
