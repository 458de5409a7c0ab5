#include "ncsub/linear.hpp"

#include <algorithm>
#include <iterator>

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

/// Of the array, or of one record.
std::int64_t bytes_of_one(const Linear& array) {
    std::int64_t bytes = array.element_bytes;
    for (std::size_t d = array.record ? 1 : 0; d < array.lengths.size(); ++d) bytes *= array.lengths[d];
    return bytes;
}

Linear linear_of(const Header& header, const Variable& variable, std::int64_t bytes_of_record) {
    Linear array;
    for (const std::int64_t id : variable.dimensions)
        array.lengths.push_back(header.dimensions[static_cast<std::size_t>(id)].length);
    array.element_bytes = bytes_of(variable.type);
    array.record = header.is_record(variable);
    if (array.record) array.record_bytes = bytes_of_record;
    return array;
}

}  // namespace

Linear linear_of(const Header& header, const Variable& variable) {
    return linear_of(header, variable, record_bytes(header));
}

bool add_run(const Linear& array, std::int64_t offset, std::int64_t bytes, std::vector<Request>& requests) {
    if (array.record && array.record_bytes == 0)
        return bytes == 0;  // a dimension of length 0 besides the unlimited one
    const std::int64_t in_record = array.record ? offset % array.record_bytes : offset;
    if (offset < 0 || in_record % array.element_bytes != 0 || bytes % array.element_bytes != 0) return false;
    const std::int64_t own_bytes = bytes_of_one(array);
    if (!array.record) {
        if (offset + bytes > own_bytes) return false;
        add_elements(array, 0, {}, offset / array.element_bytes, bytes / array.element_bytes, requests);
        return true;
    }
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

Places::Places(const Header& header) : record_bytes_(ncsub::record_bytes(header)) {
    for (const Variable& variable : header.variables) {
        arrays_.push_back(linear_of(header, variable, record_bytes_));
        const Place place{variable.begin, bytes_of_one(arrays_.back()), static_cast<int>(arrays_.size()) - 1};
        (arrays_.back().record ? records_ : fixed_).push_back(place);
    }
    for (auto* places : {&fixed_, &records_})
        std::sort(places->begin(), places->end(), [](const Place& a, const Place& b) { return a.begin < b.begin; });
}

const Places::Place* Places::holding(const std::vector<Place>& places, std::int64_t at) {
    const auto next = std::upper_bound(places.begin(), places.end(), at,
                                       [](std::int64_t byte, const Place& place) { return byte < place.begin; });
    if (next == places.begin()) return nullptr;
    const Place& place = *std::prev(next);
    return at < place.begin + place.bytes ? &place : nullptr;
}

bool Places::add_run(std::int64_t offset, std::int64_t bytes, std::vector<Elements>& all) const {
    while (bytes > 0) {
        // Records stand behind all that has none.
        const bool in_records = record_bytes_ > 0 && !records_.empty() && offset >= records_.front().begin;
        const std::int64_t record = in_records ? (offset - records_.front().begin) / record_bytes_ : 0;
        const std::int64_t at = offset - record * record_bytes_;
        const Place* place = holding(in_records ? records_ : fixed_, at);
        if (place == nullptr) return false;
        const std::int64_t length = std::min(bytes, place->begin + place->bytes - at);
        if (all.empty() || all.back().variable != place->variable) all.push_back({place->variable, {}});
        const Linear& array = arrays_[static_cast<std::size_t>(place->variable)];
        if (!ncsub::add_run(array, offset - place->begin, length, all.back().requests)) return false;
        offset += length;
        bytes -= length;
    }
    return true;
}

}  // namespace ioweir::ncsub
