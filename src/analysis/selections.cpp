#include "analysis/selections.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "analysis/summary.hpp"

namespace ioweir::analysis {

namespace codec = format::codec;

namespace {

template <typename Each>
void for_each_row(Chosen chosen, Each&& each) {
    for (std::size_t row = 0; row < chosen.size(); ++row)
        if (chosen[row] != 0) each(row);
}

}  // namespace

CallTable::Flags roots_of(const CallTable& table, Chosen chosen) {
    CallTable::Flags result(table.size(), 0);
    for_each_row(chosen, [&](std::size_t row) { result[index(table.root[row])] = 1; });
    return result;
}

CallTable::Flags mpi_around(const CallTable& table, Chosen chosen) {
    CallTable::Flags result(table.size(), 0);
    for_each_row(chosen, [&](std::size_t row) {
        if (table.mpi[row] >= 0) result[index(table.mpi[row])] = 1;
    });
    return result;
}

CallTable::Flags beneath(const CallTable& table, Chosen chosen) {
    CallTable::Flags result(table.size());
    for (std::size_t row = 0; row < result.size(); ++row) result[row] = chosen[index(table.root[row])];
    return result;
}

CallTable::Flags made_by(const CallTable& table, Chosen chosen) {
    CallTable::Flags result(table.size());
    for (std::size_t row = 0; row < result.size(); ++row)
        result[row] = table.mpi[row] >= 0 ? chosen[index(table.mpi[row])] : 0;
    return result;
}

CallTable::Flags topmost(const CallTable& table, Chosen chosen) {
    CallTable::Flags result(chosen.begin(), chosen.end());
    for_each_row(chosen, [&](std::size_t row) {
        std::int64_t above = table.parent[row];
        for (int level = 0; level < CallTable::deepest && above >= 0; ++level) {
            if (chosen[index(above)] != 0) {
                result[row] = 0;
                return;
            }
            above = table.parent[index(above)];
        }
    });
    return result;
}

CallTable::Numbers inside(const CallTable& table, Chosen chosen, const CallTable::Numbers* weights) {
    CallTable::Numbers result(table.size(), 0);
    for_each_row(chosen, [&](std::size_t row) {
        if (table.mpi[row] < 0) return;
        std::int64_t& sum = result[index(table.mpi[row])];
        sum = codec::sum(sum, weights != nullptr ? (*weights)[row] : 1);
    });
    return result;
}

CallTable::Numbers count_by(const CallTable::Numbers& group, std::size_t groups, Chosen chosen) {
    CallTable::Numbers result(groups, 0);
    for_each_row(chosen, [&](std::size_t row) { ++result[index(group[row])]; });
    return result;
}

std::vector<double> sum_by(const CallTable::Numbers& group, std::size_t groups, Chosen chosen,
                           const CallTable::Numbers& weights) {
    std::vector<double> result(groups, 0.0);
    for_each_row(chosen, [&](std::size_t row) { result[index(group[row])] += static_cast<double>(weights[row]); });
    return result;
}

CallTable::Numbers by_unit_and_file(const CallTable& table) {
    CallTable::Numbers order(table.size());
    std::vector<std::size_t> next(table.files);
    for (std::size_t begin = 0; begin < table.size();) {
        // The rows of a unit: how many there are of each file, then where each goes.
        std::size_t end = begin;
        std::vector<std::size_t> used;
        for (; end < table.size() && table.unit[end] == table.unit[begin]; ++end)
            if (next[index(table.file[end])]++ == 0) used.push_back(index(table.file[end]));
        std::sort(used.begin(), used.end());
        std::size_t place = begin;
        for (const std::size_t file : used) place += std::exchange(next[file], place);
        for (std::size_t row = begin; row < end; ++row)
            order[next[index(table.file[row])]++] = static_cast<std::int64_t>(row);
        for (const std::size_t file : used) next[file] = 0;
        begin = end;
    }
    return order;
}

CallTable::Numbers positions(const CallTable& table) {
    CallTable::Numbers result = table.offset;
    CallTable::Numbers here(table.files, 0);  // of the unit at hand
    std::vector<std::size_t> moved;           // files whose position is not 0
    for (std::size_t row = 0; row < table.size(); ++row) {
        if (row > 0 && table.unit[row] != table.unit[row - 1]) {
            for (const std::size_t file : moved) here[file] = 0;
            moved.clear();
        }
        if (table.layer[row] != table.posix) continue;
        std::int64_t& position = here[index(table.file[row])];
        if (position == 0) moved.push_back(index(table.file[row]));
        if (table.is_data[static_cast<std::size_t>(table.op[row])]) {
            if (table.offset[row] >= 0) continue;
            result[row] = position;
            position = codec::sum(position, table.bytes[row]);
        } else if (table.op[row] == table.seek || (table.op[row] == table.open && table.failed[row] == 0)) {
            position = std::max<std::int64_t>(table.offset[row], 0);
        }
    }
    return result;
}

CallTable::Flags jumps(const CallTable& table, Chosen chosen, std::span<const std::int64_t> order,
                       std::span<const std::int64_t> position) {
    CallTable::Flags result(table.size(), 0);
    bool is_first = true;
    std::size_t before = 0;
    std::int64_t last_step = 0;
    for (const std::int64_t number : order) {
        const std::size_t row = index(number);
        if (chosen[row] == 0) continue;
        const std::int64_t step = is_first ? 0 : codec::difference(position[row], position[before]);
        const bool goes_on = position[row] == codec::sum(position[before], table.bytes[before]);
        const bool same = !is_first && table.unit[row] == table.unit[before] && table.file[row] == table.file[before];
        result[row] = same && !goes_on && step != last_step && position[row] >= 0 ? 1 : 0;
        is_first = false;
        before = row;
        last_step = step;
    }
    return result;
}

CallTable::Numbers different_bytes(std::span<const std::int64_t> group, std::span<const std::int64_t> begin,
                                   std::span<const std::int64_t> stop, std::size_t groups) {
    std::vector<std::size_t> edges(groups + 1, 0);
    for (const std::int64_t one : group) ++edges[index(one) + 1];
    std::partial_sum(edges.begin(), edges.end(), edges.begin());
    std::vector<std::pair<std::int64_t, std::int64_t>> stretches(group.size());
    std::vector<std::size_t> next(edges.begin(), edges.end() - 1);
    for (std::size_t at = 0; at < group.size(); ++at) stretches[next[index(group[at])]++] = {begin[at], stop[at]};
    CallTable::Numbers result(groups, 0);
    for (std::size_t one = 0; one < groups; ++one) {
        const auto from = stretches.begin() + static_cast<std::ptrdiff_t>(edges[one]);
        const auto to = stretches.begin() + static_cast<std::ptrdiff_t>(edges[one + 1]);
        if (!std::is_sorted(from, to)) std::sort(from, to);
        Union different;
        for (auto at = from; at != to; ++at) different.add(at->first, at->second);
        result[one] = different.length();
    }
    return result;
}

}  // namespace ioweir::analysis
