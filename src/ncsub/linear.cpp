#include "ncsub/linear.hpp"

#include <algorithm>

namespace ioweir::ncsub {
namespace {

/// Joins the last two where together they are one request with the same order of elements.
bool join_last(std::vector<Request>& requests) {
    if (requests.size() < 2) return false;
    Request& one = requests[requests.size() - 2];
    const Request& other = requests.back();
    // They differ along one dimension, and those before it have one index.
    std::size_t d = 0;
    while (d < one.start.size() && one.start[d] == other.start[d] && one.count[d] == 1 && other.count[d] == 1) ++d;
    if (d == one.start.size() || other.start[d] != one.start[d] + one.count[d]) return false;
    for (std::size_t i = d + 1; i < one.start.size(); ++i)
        if (one.start[i] != other.start[i] || one.count[i] != other.count[i]) return false;
    one.count[d] += other.count[d];
    requests.pop_back();
    return true;
}

/// Elements [first, first + count) of an array, counted row by row from dimension `from` on; `fixed` are the indices before it.
void add_elements(const Linear& array, std::size_t from, std::vector<std::int64_t> fixed, std::int64_t first,
                  std::int64_t count, std::vector<Request>& requests) {
    const std::size_t dimensions = array.lengths.size();
    while (count > 0) {
        // The largest block that begins here: whole rows of some dimension, one or more of them.
        std::vector<std::int64_t> at(fixed);
        at.resize(dimensions, 0);
        std::int64_t rest = first;
        for (std::size_t d = dimensions; d-- > from;) {
            at[d] = rest % array.lengths[d];
            rest /= array.lengths[d];
        }
        Request block{at, std::vector<std::int64_t>(dimensions, 1), std::vector<std::int64_t>(dimensions, 1)};
        std::int64_t inner = 1;  // elements of a block of the dimensions behind d
        for (std::size_t d = dimensions; d-- > from;) {
            const std::int64_t fit = std::min(array.lengths[d] - at[d], count / inner);
            block.count[d] = fit;
            if (fit < array.lengths[d]) break;  // not whole: the block cannot go on outside of it
            inner *= fit;
        }
        const std::int64_t done = elements_of(block);
        first += done;
        count -= done;
        requests.push_back(std::move(block));
        while (join_last(requests)) {
        }
    }
}

}  // namespace

Linear linear_of(const Header& header, const Variable& variable) {
    Linear array;
    for (const std::int64_t id : variable.dimensions)
        array.lengths.push_back(header.dimensions[static_cast<std::size_t>(id)].length);
    array.element_bytes = bytes_of(variable.type);
    array.record = header.is_record(variable);
    if (array.record) array.record_bytes = record_bytes(header);
    return array;
}

bool add_run(const Linear& array, std::int64_t offset, std::int64_t bytes, std::vector<Request>& requests) {
    const std::int64_t in_record = array.record ? offset % array.record_bytes : offset;
    if (offset < 0 || in_record % array.element_bytes != 0 || bytes % array.element_bytes != 0) return false;
    const std::size_t from = array.record ? 1 : 0;
    std::int64_t elements = 1;  // of the array, or of one record
    for (std::size_t d = from; d < array.lengths.size(); ++d) elements *= array.lengths[d];
    if (!array.record) {
        const std::int64_t first = offset / array.element_bytes, count = bytes / array.element_bytes;
        if (first + count > elements) return false;
        add_elements(array, 0, {}, first, count, requests);
        return true;
    }
    const std::int64_t own_bytes = elements * array.element_bytes;
    const bool gapless = own_bytes == array.record_bytes;
    std::int64_t record = offset / array.record_bytes, within = in_record;
    if (!gapless && within + bytes > own_bytes) return false;
    for (std::int64_t left = bytes; left > 0;) {
        const std::int64_t length = std::min(left, own_bytes - within);
        add_elements(array, 1, {record}, within / array.element_bytes, length / array.element_bytes, requests);
        left -= length;
        within = 0;
        ++record;
    }
    return true;
}

}  // namespace ioweir::ncsub
