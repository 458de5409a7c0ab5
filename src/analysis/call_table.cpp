#include "analysis/call_table.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "analysis/gathered_calls.hpp"
#include "analysis/near.hpp"
#include "analysis/stretches.hpp"

namespace ioweir::analysis {

namespace codec = format::codec;

namespace {

constexpr std::int64_t none = -1;

class Builder {
public:
    Builder(const format::TraceFiles& files, const CallQuestion& question, const std::vector<FunctionKind>& kinds,
            const Stretches& stretches, CallTable& table)
        : files_(files),
          question_(question),
          kinds_(kinds),
          stretches_(stretches),
          table_(table),
          mpi_(static_cast<std::int8_t>(Vocabulary::position(question.names.layers, question.mpi_layer))) {
        const auto number = [](const std::vector<std::string>& names, const std::string& name) {
            return static_cast<std::int8_t>(Vocabulary::position(names, name));
        };
        table_.units = question.units;
        table_.files = question.runtime_file.size();
        table_.posix = number(question.names.layers, question.posix_layer);
        table_.open = number(question.names.ops, question.open_op);
        table_.seek = number(question.names.ops, question.seek_op);
        table_.is_data.resize(question.names.ops.size() + 1);
        for (const std::string& op : question.data_ops)
            table_.is_data[Vocabulary::position(question.names.ops, op)] = true;
    }

    /// False where the stretches have many more calls than there is room for: those of the last units are missing.
    bool build() {
        std::vector<std::vector<std::uint32_t>> threads_of(question_.units);
        std::uint64_t events = 0;
        for (std::uint32_t thread = 0; thread < files_.threads().size(); ++thread) {
            const std::int32_t unit = question_.unit_of_process[files_.threads()[thread].process];
            if (unit < 0) continue;
            threads_of[static_cast<std::size_t>(unit)].push_back(thread);
            events += files_.threads()[thread].events;
        }
        const std::uint64_t limit = stretches_.whole() ? 0 : question_.most + question_.most / 2;
        reserve(limit == 0 ? events : std::min(events, limit));
        bool complete = true;
        {
            GatheredCalls gathered(files_, question_, kinds_, stretches_, limit);
            for (std::size_t unit = 0; unit < threads_of.size(); ++unit) {
                gathered.gather(threads_of[unit]);
                add_unit(unit, gathered);
            }
            complete = !gathered.left_out();
            table_.stretches = stretches_.size();
            if (gathered.gathered_ns() > 0)
                table_.whole_over_rows =
                    std::max(static_cast<double>(gathered.all_ns()) / static_cast<double>(gathered.gathered_ns()), 1.0);
        }
        find_ancestors();
        extend_requests();
        find_following();
        find_meetings();
        find_arrivals();
        return complete;
    }

private:
    void reserve(std::uint64_t events) {
        for (CallTable::Numbers* column : {&table_.unit, &table_.file, &table_.start, &table_.end, &table_.duration,
                                           &table_.bytes, &table_.offset, &table_.parent})
            column->reserve(events);
        table_.function.reserve(events);
        table_.access.reserve(events);
        table_.layer.reserve(events);
        table_.op.reserve(events);
        table_.origin.reserve(events);
        for (CallTable::Flags* column : {&table_.collective, &table_.completes, &table_.failed})
            column->reserve(events);
    }

    /// The rows of a unit, with the calls right around them.
    void add_unit(std::size_t unit, const GatheredCalls& gathered) {
        for (const GatheredCall& wait : gathered.waits()) {
            table_.waits.unit.push_back(static_cast<std::int64_t>(unit));
            table_.waits.function.push_back(wait.function);
            table_.waits.start.push_back(wait.start);
            table_.waits.end.push_back(codec::sum(wait.start, wait.duration));
        }
        const std::size_t base = table_.size();
        for (const GatheredCall& call : gathered.calls()) add_row(unit, call);
        find_parents(base, gathered.calls());
    }

    void add_row(std::size_t unit, const GatheredCall& call) {
        const FunctionKind& kind = kinds_[call.function];
        table_.unit.push_back(static_cast<std::int64_t>(unit));
        table_.file.push_back(call.file);
        table_.start.push_back(call.start);
        table_.end.push_back(codec::sum(call.start, call.duration));
        table_.duration.push_back(call.duration);
        table_.bytes.push_back(call.failed || kind.completes ? 0 : std::max<std::int64_t>(call.bytes, 0));
        table_.offset.push_back(call.offset);
        table_.function.push_back(call.function);
        table_.access.push_back(call.access);
        table_.layer.push_back(static_cast<std::int8_t>(kind.layer));
        table_.op.push_back(static_cast<std::int8_t>(kind.op));
        table_.origin.push_back(call.origin);
        table_.collective.push_back(kind.collective ? 1 : 0);
        table_.completes.push_back(kind.completes ? 1 : 0);
        table_.failed.push_back(call.failed ? 1 : 0);
        thread_of_row_.push_back(call.thread);
        sequence_of_row_.push_back(call.sequence);
        if (!stretches_.whole()) collective_number_.push_back(call.collective_number);
    }

    static std::uint64_t key_of(std::uint32_t thread, std::uint32_t sequence) {
        return std::uint64_t{thread} << 32 | sequence;
    }

    /// Of the unit's rows, which begin with `base`.
    void find_parents(std::size_t base, const GatheredCalls::Calls& calls) {
        CallTable::Column<std::pair<std::uint64_t, std::size_t>> by_entry(calls.size());
        for (std::size_t at = 0; at < calls.size(); ++at)
            by_entry[at] = {key_of(calls[at].thread, calls[at].sequence), at};
        sort_nearly(by_entry, std::less<>());
        CallTable::Column<std::uint64_t> keys(calls.size());
        std::transform(by_entry.begin(), by_entry.end(), keys.begin(), [](const auto& entry) { return entry.first; });
        table_.parent.resize(table_.size(), none);
        for (std::size_t place = 0; place < keys.size(); ++place) {
            const std::size_t at = by_entry[place].second;
            if (calls[at].parent == 0) continue;
            const std::uint64_t wanted = key_of(calls[at].thread, calls[at].parent);
            const std::size_t found = first_not_below(keys, place, wanted);
            if (found == keys.size() || keys[found] != wanted || by_entry[found].second == at) continue;
            table_.parent[base + at] = static_cast<std::int64_t>(base + by_entry[found].second);
        }
    }

    void find_ancestors() {
        const std::size_t rows = table_.size();
        table_.root.resize(rows);
        table_.mpi.assign(rows, none);
        table_.outermost.resize(rows);
        for (std::size_t row = 0; row < rows; ++row) {
            auto root = static_cast<std::int64_t>(row);
            std::int64_t above = table_.parent[row];
            for (int level = 0; level < CallTable::deepest && above >= 0; ++level) {
                root = above;
                if (table_.mpi[row] < 0 && table_.layer[index(above)] == mpi_) table_.mpi[row] = above;
                above = table_.parent[index(above)];
            }
            table_.root[row] = root;
            table_.outermost[row] = root == static_cast<std::int64_t>(row) ? 1 : 0;
        }
    }

    /// An asynchronous request inside of an MPI-IO call lasts until something says that it has ended.
    void extend_requests() {
        std::unordered_map<std::uint64_t, std::int64_t> ended;
        for (std::size_t row = 0; row < table_.size(); ++row) {
            if (!is_posix(row) || table_.completes[row] == 0 || table_.offset[row] <= 0) continue;
            const std::uint64_t key = key_of(thread_of_row_[row], static_cast<std::uint32_t>(table_.offset[row]));
            const auto [place, is_new] = ended.try_emplace(key, table_.end[row]);
            if (!is_new) place->second = std::min(place->second, table_.end[row]);
        }
        if (ended.empty()) return;
        for (std::size_t row = 0; row < table_.size(); ++row) {
            if (!is_posix(row) || !kinds_[table_.function[row]].begins || table_.mpi[row] < 0) continue;
            const auto found = ended.find(key_of(thread_of_row_[row], sequence_of_row_[row]));
            if (found == ended.end()) continue;
            const std::int64_t call_end = table_.end[index(table_.mpi[row])];
            table_.end[row] = std::max(table_.end[row], std::min(found->second, call_end));
            table_.duration[row] = codec::difference(table_.end[row], table_.start[row]);
        }
    }
    [[nodiscard]] bool is_posix(std::size_t row) const {
        return table_.layer[row] == table_.posix && table_.failed[row] == 0;
    }

    void find_following() {
        table_.following.assign(table_.size(), none);
        std::vector<std::int64_t> last(files_.threads().size(), none);
        for (std::size_t row = 0; row < table_.size(); ++row) {
            if (table_.outermost[row] == 0) continue;
            std::int64_t& before = last[thread_of_row_[row]];
            if (before >= 0) table_.following[index(before)] = static_cast<std::int64_t>(row);
            before = static_cast<std::int64_t>(row);
        }
    }

    /// The ranks' calls number k on a file are one call of all.
    struct Meeting {
        std::int64_t last = none;    ///< the row of who came last
        std::int64_t before = none;  ///< of who came before it
        std::int64_t first_end = std::numeric_limits<std::int64_t>::max();
        std::int64_t calls = 0;
        bool ahead = false;  ///< a rank moved data before the last one came
    };

    void find_meetings() {
        table_.meeting.assign(table_.size(), none);
        table_.arrival_shift.assign(table_.size(), 0);
        std::vector<std::size_t> calls;
        for (std::size_t row = 0; row < table_.size(); ++row)
            if (table_.collective[row] != 0 && table_.layer[row] == mpi_ && table_.completes[row] == 0 &&
                table_.mpi[row] < 0)
                calls.push_back(row);
        if (calls.empty()) return;
        const std::vector<std::int64_t> number =
            stretches_.whole() ? number_meetings(calls) : number_meetings_of_stretches(calls);
        std::vector<Meeting> meetings(static_cast<std::size_t>(*std::max_element(number.begin(), number.end())) + 1);
        for (std::size_t at = 0; at < calls.size(); ++at) come(meetings[index(number[at])], calls[at]);
        find_ahead(calls, number, meetings);
        for (std::size_t at = 0; at < calls.size(); ++at) {
            const Meeting& meeting = meetings[index(number[at])];
            if (!is_waiting(meeting)) continue;
            const std::size_t row = calls[at];
            table_.meeting[row] = number[at];
            const std::int64_t shift = codec::difference(table_.start[index(meeting.last)], table_.start[row]);
            table_.arrival_shift[row] = codec::sum(table_.arrival_shift[row], shift);
            const std::size_t root = index(table_.root[row]);
            if (root != row) table_.arrival_shift[root] = codec::sum(table_.arrival_shift[root], shift);
        }
        for (const Meeting& meeting : meetings)
            if (is_waiting(meeting)) tell(meeting);
        std::sort(table_.boundaries.begin(), table_.boundaries.end());
    }

    /// Of collective calls, ordered by unit and start, the number of their meeting: by file, then by the call's number on it.
    [[nodiscard]] std::vector<std::int64_t> number_meetings(const std::vector<std::size_t>& calls) const {
        std::vector<std::int64_t> made(table_.files, 0);  // by the unit, of each file
        std::vector<std::int64_t> most(table_.files, 0);
        std::vector<std::int64_t> number(calls.size());
        std::vector<std::size_t> touched;
        for (std::size_t at = 0; at < calls.size(); ++at) {
            if (at > 0 && table_.unit[calls[at]] != table_.unit[calls[at - 1]]) {
                for (const std::size_t file : touched) made[file] = 0;
                touched.clear();
            }
            const std::size_t file = index(table_.file[calls[at]]);
            if (made[file] == 0) touched.push_back(file);
            number[at] = made[file]++;
            most[file] = std::max(most[file], made[file]);
        }
        std::exclusive_scan(most.begin(), most.end(), most.begin(), std::int64_t{0});
        for (std::size_t at = 0; at < calls.size(); ++at) number[at] += most[index(table_.file[calls[at]])];
        return number;
    }

    /// The same where calls of the unit on the file are missing: those that have one number are one meeting.
    [[nodiscard]] std::vector<std::int64_t> number_meetings_of_stretches(const std::vector<std::size_t>& calls) const {
        using Key = std::pair<std::int64_t, std::int64_t>;
        std::vector<Key> keys;
        for (const std::size_t row : calls) keys.emplace_back(table_.file[row], collective_number_[row]);
        std::vector<Key> meetings = keys;
        std::sort(meetings.begin(), meetings.end());
        meetings.erase(std::unique(meetings.begin(), meetings.end()), meetings.end());
        std::vector<std::int64_t> number;
        std::size_t near = 0;
        for (const Key& key : keys) {
            near = first_not_below(meetings, near, key);
            number.push_back(static_cast<std::int64_t>(near));
        }
        return number;
    }

    void come(Meeting& meeting, std::size_t row) const {
        ++meeting.calls;
        meeting.first_end = std::min(meeting.first_end, table_.end[row]);
        const auto came_after = [&](std::int64_t other) {
            return other < 0 || table_.start[row] >= table_.start[index(other)];
        };
        if (came_after(meeting.last))
            meeting.before = std::exchange(meeting.last, static_cast<std::int64_t>(row));
        else if (came_after(meeting.before))
            meeting.before = static_cast<std::int64_t>(row);
    }

    /// Collective calls in which a rank moved data before the last one came: they do not wait for each other.
    void find_ahead(const std::vector<std::size_t>& calls, const std::vector<std::int64_t>& number,
                    std::vector<Meeting>& meetings) const {
        std::vector<std::int64_t> of_call(table_.size(), none);
        for (std::size_t at = 0; at < calls.size(); ++at) of_call[calls[at]] = number[at];
        for (std::size_t row = 0; row < table_.size(); ++row) {
            if (table_.mpi[row] < 0 || !is_data(row) || table_.layer[row] != table_.posix || table_.bytes[row] <= 0)
                continue;
            const std::size_t call = index(table_.mpi[row]);
            if (of_call[call] < 0 || !is_data(call)) continue;
            Meeting& meeting = meetings[index(of_call[call])];
            if (table_.start[row] < table_.start[index(meeting.last)]) meeting.ahead = true;
        }
    }
    [[nodiscard]] bool is_data(std::size_t row) const {
        return table_.is_data[static_cast<std::size_t>(table_.op[row])];
    }

    /// Whether ranks waited for each other there.
    [[nodiscard]] bool is_waiting(const Meeting& meeting) const {
        return meeting.calls > 1 && meeting.first_end >= table_.start[index(meeting.last)] && !meeting.ahead;
    }

    void tell(const Meeting& meeting) {
        const std::size_t last = index(meeting.last);
        table_.late.unit.push_back(table_.unit[last]);
        table_.late.before.push_back(table_.start[index(meeting.before)]);
        table_.late.arrival.push_back(table_.start[last]);
        table_.late.file.push_back(table_.file[last]);
        table_.late.ranks.push_back(meeting.calls);
        if (meeting.calls >= static_cast<std::int64_t>(question_.unit_count))
            table_.boundaries.push_back(table_.start[last]);
    }

    void find_arrivals() {
        const std::size_t rows = table_.size();
        table_.arrival.resize(rows);
        table_.phase.resize(rows);
        table_.pause_before.assign(rows, 0);
        std::size_t near = 0;
        for (std::size_t row = 0; row < rows; ++row) {
            const std::int64_t arrival =
                std::min(codec::sum(table_.start[row], table_.arrival_shift[row]), table_.end[row]);
            near = first_not_below(table_.boundaries, near, codec::sum(arrival, 1));
            table_.arrival[row] = arrival;
            table_.phase[row] = static_cast<std::int64_t>(near);
            const std::int64_t then = table_.following[row];
            if (then >= 0 && table_.arrival_shift[index(then)] == 0)
                table_.pause_before[index(then)] =
                    std::max<std::int64_t>(codec::difference(table_.start[index(then)], table_.end[row]), 0);
        }
    }

    const format::TraceFiles& files_;
    const CallQuestion& question_;
    const std::vector<FunctionKind>& kinds_;
    const Stretches& stretches_;
    CallTable& table_;
    std::int8_t mpi_;
    CallTable::Numbers collective_number_;  ///< by row; empty where all calls are rows
    CallTable::Column<std::uint32_t> thread_of_row_;
    CallTable::Column<std::uint32_t> sequence_of_row_;
};

}  // namespace

Result<CallTable> read_calls(const format::TraceFiles& files, const CallQuestion& question) {
    const auto kinds = question.names.kinds();
    if (!kinds) return kinds.error();
    if (question.most == 0 || files.event_count() <= question.most) {
        CallTable table;
        Builder(files, question, kinds.value(), Stretches{}, table).build();
        return table;
    }
    const std::vector<std::int64_t> starts = sampled_starts(files, question.unit_of_process);
    const double part = static_cast<double>(question.most) / static_cast<double>(files.event_count());
    // In each stretch a thread has calls enough for what lies between them to be seen.
    constexpr std::uint64_t calls_of_thread = 1000, fewest = 8, most = 64;
    const std::uint64_t threads = std::max<std::uint64_t>(files.threads().size(), 1);
    const auto count = static_cast<std::size_t>(std::clamp(question.most / (threads * calls_of_thread), fewest, most));
    // Calls inside of those that begin in a stretch may be many more than expected.
    for (int halvings = 0;; ++halvings) {
        constexpr int enough = 6;
        const Stretches stretches(starts, std::ldexp(part, -halvings), count);
        CallTable table;
        if (Builder(files, question, kinds.value(), stretches, table).build() || halvings == enough) return table;
    }
}

}  // namespace ioweir::analysis
