// Fuzzes the sums of traces and the table of their calls: of whatever the reader takes, every event is counted once, sums fit to each other,
// the calls around each one are calls, prices fit to each other, and nothing overflows.
// Inputs are those of the reader's own target (format/fuzz_image.cpp). Half of them are summed up as of an MPI program, half by process.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/call_table.hpp"
#include "analysis/prices.hpp"
#include "analysis/selections.hpp"
#include "analysis/summary.hpp"
#include "base/fuzz_input.hpp"
#include "base/fuzz_target.hpp"
#include "format/reader_fuzz.hpp"

namespace ioweir::analysis {
namespace {

/// All names that functions have, in their order.
Vocabulary vocabulary() {
    Vocabulary names;
    const auto add = [](std::vector<std::string>& all, const char* name) {
        if (Vocabulary::position(all, name) == all.size()) all.emplace_back(name);
    };
    for (std::uint16_t id = 1; id < format::function_count; ++id) {
        add(names.layers, format::functions[id].layer);
        add(names.ops, format::functions[id].op);
    }
    return names;
}

Question question(const format::TraceFiles& files, bool by_rank) {
    static const Vocabulary names = vocabulary();
    Question asked;
    asked.names = names;
    asked.mpi_layer = "MPI-IO";
    asked.posix_layer = "POSIX";
    asked.wait_layer = "MPI";
    asked.data_ops = {"write", "read"};
    asked.transfer_ops = {"write", "read", "split"};
    asked.close_op = "close";
    const auto& processes = files.about().processes;
    for (std::size_t i = 0; i < processes.size(); ++i)
        asked.unit_of_process.push_back(by_rank && processes[i].rank < 0 ? -1 : static_cast<std::int32_t>(i));
    asked.units = processes.size();
    for (std::uint32_t path = 0; path < files.about().paths.size(); ++path) {
        asked.file_of_path.push_back(path);
        asked.runtime_file.push_back(path % 5 == 4 ? 1 : 0);
    }
    return asked;
}

std::uint64_t calls_in(const Table& table) {
    std::uint64_t calls = 0;
    for (const Row& row : table.rows()) calls += row.calls;
    return calls;
}

void check(const format::TraceFiles& files, bool by_rank) {
    Watch watch;
    const auto summed = summarise(files, question(files, by_rank), watch);
    require(summed.ok(), "sums of a trace that was read");
    const Summary& sums = summed.value();
    require(sums.events == files.event_count(), "every event once");
    require(sums.counted <= sums.events, "events in the tables");
    const std::uint64_t calls = calls_in(sums.job);
    require(calls <= sums.counted && calls == calls_in(sums.by_file) && calls == calls_in(sums.by_unit),
            "the run's calls are those of its files and of its units");
    std::uint64_t failed = 0, errors = 0;
    for (const Row& row : sums.job.rows()) failed += row.failed;
    for (const auto& [kind, count] : sums.errors) errors += count;
    require(errors == failed, "an error for each call that failed");
}

/// `most`: calls that there is room for, 0 for all.
void check_table(const format::TraceFiles& files, bool by_rank, std::uint64_t most) {
    const Question of_sums = question(files, by_rank);
    CallQuestion asked;
    asked.names = of_sums.names;
    asked.mpi_layer = of_sums.mpi_layer;
    asked.posix_layer = of_sums.posix_layer;
    asked.wait_layer = of_sums.wait_layer;
    asked.data_ops = of_sums.data_ops;
    asked.open_op = "open";
    asked.seek_op = "seek";
    asked.unit_of_process = of_sums.unit_of_process;
    asked.units = asked.unit_count = of_sums.units;
    asked.file_of_path = of_sums.file_of_path;
    asked.runtime_file = of_sums.runtime_file;
    asked.most = most;
    const auto made = read_calls(files, asked);
    require(made.ok(), "calls of a trace that was read");
    const CallTable& table = made.value();
    require(table.size() <= files.event_count(), "a row an event at most");
    require(table.stretches == 0 || table.size() <= most + most / 2, "no more rows than there is room for");
    require(table.whole_over_rows >= 1, "the whole is no less than a part");
    const auto rows = static_cast<std::int64_t>(table.size());
    for (const auto* column : {&table.parent, &table.root, &table.mpi, &table.following})
        for (const std::int64_t row : *column) require(row >= -1 && row < rows, "rows that are there");
    const CallTable::Flags all(table.size(), 1);
    const std::vector<std::int64_t> busy = busy_by_unit(table, all);
    require(busy.size() == table.units && price(table, all, 0).by_unit_s.size() == table.units, "an entry a unit");
    span_of(table, all);
    require(by_unit_and_file(table).size() == table.size() && positions(table).size() == table.size(),
            "an entry a call");
    require(topmost(table, all).size() == table.size() && roots_of(table, all).size() == table.size(), "the same");
}

}  // namespace
}  // namespace ioweir::analysis

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ioweir;
    const format::PackedTrace trace = format::image_of(data, size);
    const format::TraceBytes one{"trace", trace.bytes};
    const auto files = format::TraceFiles::read({&one, 1}, trace.span);
    if (files) {
        analysis::check(files.value(), is_one_in(2, data, size));
        analysis::check_table(files.value(), is_one_in(2, data, size), is_one_in(3, data, size) ? 5 : 0);
    }
    return 0;
}
