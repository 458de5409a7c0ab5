#include "adapters/pnetcdf/access.hpp"

#include <algorithm>

#include "adapters/pnetcdf/arguments.hpp"
#include "adapters/pnetcdf/element_types.hpp"
#include "adapters/pnetcdf/tasks.hpp"
#include "adapters/pnetcdf/vard.hpp"
#include "base/checked.hpp"

namespace ioweir::pnetcdf {
namespace {

using ncsub::CallForm;
using ncsub::Element;
using ncsub::RequestView;

const Offset* offsets(const Call& call, int place) {
    return place >= 0 ? argument<const Offset*>(call, place) : nullptr;
}

/// Elements of a request whose counts may be anything; 0 where there is no such number.
std::int64_t elements_asked(const RequestView& request) {
    std::int64_t product = 1;
    for (std::size_t d = 0; d < request.dimensions; ++d) {
        const std::int64_t n = request.count[d];
        const auto next = n < 0 ? std::nullopt : checked_multiply(product, n);
        if (!next) return 0;
        product = *next;
    }
    return product;
}

int buffer_of(const Call& call, const CallForm& form, ncsub::Type type, std::int64_t elements, Buffer& buffer) {
    buffer.data = argument<std::byte*>(call, form.buffer());
    buffer.map = offsets(call, form.map());
    if (form.element != Element::described) {
        buffer.element = form.element;
        buffer.type = mpi_type(form.element);
        buffer.count = elements;
        return no_error;
    }
    buffer.type = argument<MPI_Datatype>(call, form.buffer_type());
    buffer.count = argument<Offset>(call, form.buffer_count());
    if (buffer.type == MPI_DATATYPE_NULL) {
        buffer.element = element_of(type);
        buffer.type = mpi_type(buffer.element);
        buffer.count = elements;
        return no_error;
    }
    const Decoded decoded = decode_type(buffer.type);
    if (decoded.error != no_error) return decoded.error;
    buffer.element = decoded.element;
    buffer.plain = decoded.plain;
    if (decoded.plain && buffer.count < 0) buffer.count = elements;  // NC_COUNT_IGNORE
    if (buffer.count * decoded.elements != elements) return error_mismatch;
    return no_error;
}

/// The library counts records in 32 bits in two of its formats, and takes no request of more bytes.
constexpr std::int64_t safe_number = (std::int64_t{1} << 31) - 1;

/// Is it beyond doubt that the library finds nothing wrong with this request? Then it is not asked.
bool is_valid(const ncsub::Header& header, const ncsub::Variable& variable, const RequestView& request,
              std::int64_t records, bool writes) {
    std::int64_t elements = 1;
    for (std::size_t d = 0; d < request.dimensions; ++d) {
        const std::int64_t of_file = header.dimensions[static_cast<std::size_t>(variable.dimensions[d])].length;
        const bool unlimited = d == 0 && of_file == 0;
        const std::int64_t length = !unlimited ? of_file : writes ? safe_number : records;
        const std::int64_t start = request.start[d], count = request.count[d], stride = request.step(d);
        if (start < 0 || start >= length || count <= 0 || stride <= 0) return false;
        if (count - 1 > (length - 1 - start) / stride) return false;
        if (count > safe_number / elements) return false;
        elements *= count;
    }
    return elements <= safe_number / ncsub::bytes_of(variable.type);
}

/// The library's lists of numbers.
struct Lists {
    std::vector<Offset> start, count, stride;
    explicit Lists(const RequestView& request) {
        for (std::size_t d = 0; d < request.dimensions; ++d) {
            start.push_back(request.start[d]);
            count.push_back(request.count[d]);
            stride.push_back(request.step(d));
        }
    }
};

/// What the library says of a request for records of a file that may get more of them. The logical file has none: it is asked for a write, of no
/// buffer, and what is to be read is compared here.
int ask_for_records(const File& file, int variable, const RequestView& request, const Buffer& buffer, bool writes) {
    const Lists lists(request);
    int number = -1;
    const auto ask = [&] {
        const char nothing = 0;
        return file.library->iput_vars(file.ncid, variable, lists.start.data(), lists.count.data(), lists.stride.data(),
                                       &nothing, 0, mpi_type(buffer.element), &number);
    };
    if (writes || request.start[0] < 0 || request.count[0] < 0 || request.step(0) <= 0) return ask();
    const ncsub::Reach reach = ncsub::reach_of(request, records_of(file));
    if (reach == ncsub::Reach::begins_outside) return error_coordinates;
    const int code = ask();
    return code == no_error && reach == ncsub::Reach::ends_outside ? error_edge : code;
}

/// What the library says of this request for the logical file: it is begun and given up there, which moves nothing.
int ask_library(const File& file, int variable, bool record, const RequestView& request, const Buffer& buffer,
                bool writes) {
    if (record && file.writable) return ask_for_records(file, variable, request, buffer, writes);
    const Lists lists(request);
    int number = -1, status = 0;
    const int code =
        file.library->iget_vars(file.ncid, variable, lists.start.data(), lists.count.data(), lists.stride.data(),
                                buffer.data, elements_asked(request), mpi_type(buffer.element), &number);
    if (number >= 0) (void)file.library->cancel(file.ncid, 1, &number, &status);
    return code;
}

/// Records that there are at least after a write. The library counts them from where a collective one begins, though it has no elements.
std::int64_t records_after(const Call& call, const CallForm& form, const RequestView& request) {
    const bool counts_nothing = form.blocking() && form.collective && form.access != ncsub::Access::varn;
    if (elements_asked(request) > 0 || !counts_nothing) return ncsub::records_of(request);
    if (offsets(call, form.stride()) == nullptr) return request.start[0] + request.count[0];
    return request.start[0] + (request.count[0] - 1) * request.step(0) + 1;
}

/// Do all places that a map leads to lie in a buffer of so many elements?
bool map_fits(std::span<const std::int64_t> count, std::span<const std::int64_t> map, std::int64_t elements) {
    std::int64_t least = 0, most = 0;
    for (std::size_t d = 0; d < count.size(); ++d) {
        const auto far = checked_multiply(count[d] - 1, map[d]);
        const auto end = far ? checked_add(*far < 0 ? least : most, *far) : std::nullopt;
        if (!end) return false;
        (*far < 0 ? least : most) = *end;
    }
    return least >= 0 && most < elements;
}

}  // namespace

int Packed::pack(const Buffer& buffer, std::vector<std::byte>& to) const {
    const auto bytes = checked_cast<int>(to.size());
    const auto count = checked_cast<int>(buffer.count);
    if (!bytes || !count) return error_overflow;
    int at = 0;
    return PMPI_Pack(buffer.data, *count, buffer.type, to.data(), *bytes, &at, MPI_COMM_SELF) == MPI_SUCCESS
               ? no_error
               : error_element_type;
}

int Packed::unpack(const Buffer& buffer, const std::vector<std::byte>& from) const {
    int at = 0;
    return PMPI_Unpack(from.data(), static_cast<int>(from.size()), &at, buffer.data, static_cast<int>(buffer.count),
                       buffer.type, MPI_COMM_SELF) == MPI_SUCCESS
               ? no_error
               : error_element_type;
}

int Packed::open(const Buffer& buffer, const RequestView& first, std::int64_t elements, bool writing, bool copy) {
    const auto element_bytes = static_cast<std::size_t>(ncsub::bytes_of(buffer.element));
    data_ = buffer.data;
    if (buffer.plain && buffer.map == nullptr && !copy) return no_error;
    own_.resize(static_cast<std::size_t>(elements) * element_bytes);
    if (buffer.map != nullptr) map_.assign(buffer.map, buffer.map + first.dimensions);
    if (buffer.map != nullptr && !buffer.plain) {
        // The map counts the elements of what the datatype picks.
        if (!map_fits({first.count, first.dimensions}, map_, elements)) return error_mismatch;
        if (!writing) return no_error;
        std::vector<std::byte> picked(own_.size());
        const int error = pack(buffer, picked);
        if (error == no_error)
            ncsub::pack_mapped({first.count, first.dimensions}, map_, element_bytes, picked.data(), own_.data());
        return error;
    }
    if (buffer.map != nullptr) {
        if (writing) ncsub::pack_mapped({first.count, first.dimensions}, map_, element_bytes, buffer.data, own_.data());
        return no_error;
    }
    if (buffer.plain) {
        if (writing) std::copy_n(buffer.data, own_.size(), own_.data());
        return no_error;
    }
    if (writing) return pack(buffer, own_);
    return checked_cast<int>(own_.size()) && checked_cast<int>(buffer.count) ? no_error : error_overflow;
}

int Packed::give_back(const Buffer& buffer, const RequestView& first) const {
    if (own_.empty()) return no_error;
    const auto element_bytes = static_cast<std::size_t>(ncsub::bytes_of(buffer.element));
    if (buffer.map != nullptr && !buffer.plain) {
        std::vector<std::byte> picked(own_.size());
        const int error = pack(buffer, picked);
        if (error != no_error) return error;
        ncsub::unpack_mapped({first.count, first.dimensions}, map_, element_bytes, own_.data(), picked.data());
        return unpack(buffer, picked);
    }
    if (buffer.map != nullptr) {
        ncsub::unpack_mapped({first.count, first.dimensions}, map_, element_bytes, own_.data(), buffer.data);
    } else if (buffer.plain) {
        std::copy_n(own_.data(), own_.size(), buffer.data);
    } else {
        return unpack(buffer, own_);
    }
    return no_error;
}

void Access::add_request(const Offset* start, const Offset* count, const Offset* stride, std::size_t dimensions) {
    const auto add = [&](const Offset* list) {
        if (list != nullptr)
            numbers_.insert(numbers_.end(), list, list + dimensions);
        else
            numbers_.insert(numbers_.end(), dimensions, 1);
    };
    add(start);
    add(count);
    if (strides_) add(stride);
    ++parts_.back().requests;
}

int Access::take_lists(const File& file, const ncsub::Header& header, const Call& call, const CallForm& form,
                       bool& no_counts) {
    const ncsub::Variable& variable = header.variables[static_cast<std::size_t>(variable_)];
    const std::size_t n = variable.dimensions.size();
    if (form.access == ncsub::Access::varn) {
        const auto number = argument<int>(call, 2);
        const auto* starts = argument<const Offset* const*>(call, 3);
        const auto* counts = argument<const Offset* const*>(call, 4);
        if (number > 0 && starts == nullptr) return error_start;
        for (int i = 0; i < number; ++i)
            if (starts[i] == nullptr) return error_start;
        if (number > 0) parts_.push_back({variable_, n, 0});
        numbers_.reserve(static_cast<std::size_t>(std::max(number, 0)) * 2 * n);
        for (int i = 0; i < number; ++i) add_request(starts[i], counts != nullptr ? counts[i] : nullptr, nullptr, n);
        return no_error;
    }
    const Offset* start = offsets(call, form.start());
    const Offset* count = offsets(call, form.count());
    const Offset* stride = offsets(call, form.stride());
    if (form.start() >= 0 && start == nullptr) return error_coordinates;
    no_counts = form.count() >= 0 && count == nullptr;
    const bool ones = form.access == ncsub::Access::var1 || no_counts;
    strides_ = stride != nullptr && !ones;
    parts_.push_back({variable_, n, 0});
    // Where the form leaves something out, it is the whole variable.
    std::vector<Offset> zeros, lengths;
    if (start == nullptr || (count == nullptr && !ones)) {
        zeros.assign(n + 1, 0);
        for (const std::int64_t id : variable.dimensions)
            lengths.push_back(header.dimensions[static_cast<std::size_t>(id)].length);
        if (header.is_record(variable)) lengths[0] = records_of(file);
        lengths.push_back(0);
        if (start == nullptr) start = zeros.data();
        if (count == nullptr && !ones) count = lengths.data();
    }
    numbers_.reserve((strides_ ? 3 : 2) * n);
    add_request(start, ones ? nullptr : count, stride, n);
    return no_error;
}

int Access::find_elements(const File& file, const ncsub::Header& header, const Call& call, const CallForm& form,
                          bool& no_counts) {
    int error = no_error;
    if (form.access == ncsub::Access::vard) {
        std::vector<ncsub::Elements> wanted;
        error = elements_of_type(file, call, variable_, wanted);
        for (const ncsub::Elements& some : wanted) {
            const std::size_t dimensions = header.variables[static_cast<std::size_t>(some.variable)].dimensions.size();
            parts_.push_back({some.variable, dimensions, 0});
            for (const ncsub::Request& request : some.requests) {
                numbers_.insert(numbers_.end(), request.start.begin(), request.start.end());
                numbers_.insert(numbers_.end(), request.count.begin(), request.count.end());
                ++parts_.back().requests;
            }
        }
    } else {
        error = take_lists(file, header, call, form, no_counts);
    }
    for_each_request([&](int, const RequestView& request) { elements_ += elements_asked(request); });
    return error;
}

Access::Access(const File& file, const ncsub::Header& header, const Call& call, const CallForm& form)
    : writes_(form.writes()), variable_(argument<int>(call, 1)) {
    const ncsub::Variable& variable = header.variables[static_cast<std::size_t>(variable_)];
    const bool buffered = form.verb == ncsub::Verb::bput;
    const bool by_type = form.access == ncsub::Access::vard;
    type_ = variable.type;
    const bool text = type_ == ncsub::Type::text;
    bool no_counts = false;
    if (writes_ && !file.writable) error_ = error_permission;
    if (by_type && error_ == no_error) error_ = find_elements(file, header, call, form, no_counts);
    if (error_ == no_error && form.element != Element::described && text != (form.element == Element::text))
        error_ = error_text;
    Offset attached = 0;
    if (error_ == no_error && buffered) error_ = file.library->inq_buffer_size(file.master, &attached);
    if (error_ == no_error && !by_type) error_ = find_elements(file, header, call, form, no_counts);
    if (by_type && parts_.empty()) return;
    if (no_counts)  // no buffer has a size then, and the library still says what is wrong with the rest
        buffer_.element = element_of(type_);
    if (error_ == no_error && !no_counts) error_ = buffer_of(call, form, type_, elements_, buffer_);
    // What is wrong with start, count and stride comes first.
    const bool mismatch = error_ == error_mismatch && !by_type;
    if (mismatch) error_ = no_error;
    if (error_ == no_error && !no_counts && text != (buffer_.element == Element::text)) error_ = error_text;
    if (!by_type && error_ == no_error) {
        const bool record = header.is_record(variable);
        const std::int64_t records = record ? records_of(file) : 0;
        for_each_request([&](int, const RequestView& request) {
            if (error_ == no_error && !is_valid(header, variable, request, records, writes_))
                error_ = ask_library(file, variable_, record, request, buffer_, writes_);
        });
    }
    if (error_ == no_error && mismatch) error_ = error_mismatch;
    if (error_ == no_error && no_counts) error_ = error_edge;
    if (error_ == no_error && elements_ > 0) error_ = packed_.open(buffer_, first(), elements_, writes_, buffered);
    // The program may free the type before it waits.
    if (error_ == no_error && elements_ > 0 && !form.blocking() && !writes_ && !buffer_.plain) {
        kept_ = KeptType(buffer_.type);
        buffer_.type = kept_.get();
        if (!kept_.ok()) error_ = error_element_type;
    }
    if (error_ != no_error) elements_ = 0;
    if (error_ != no_error || !writes_) return;
    for_each_request([&](int id, const RequestView& request) {
        if (header.is_record(header.variables[static_cast<std::size_t>(id)]))
            records_ = std::max(records_, records_after(call, form, request));
    });
}

int Access::range_error(const File& file) {
    if (!writes_ || buffer_.element == element_of(type_)) return no_error;
    std::vector<Wanted> wanted;
    add_to(wanted);
    int result = no_error;
    // Begun for the logical file, where its values are converted, and given up, which moves nothing.
    for (const Wanted& one : wanted) {
        int number = no_request, status = no_error;
        const int code =
            begin_request(*file.library, file.ncid, one.variable, one.request, one.element, one.to, true, number);
        if (number != no_request) (void)file.library->cancel(file.ncid, 1, &number, &status);
        if (code == error_range) result = code;
    }
    return result;
}

void Access::add_to(std::vector<Wanted>& wanted, int number) {
    if (elements_ == 0) return;
    std::byte* at = packed_.data();
    for_each_request([&](int id, const RequestView& request) {
        const std::int64_t elements = elements_of(request);
        if (elements > 0) wanted.push_back({id, buffer_.element, number, request, at, at, no_error});
        at += elements * ncsub::bytes_of(buffer_.element);
    });
}

int Access::finish() const { return writes_ || elements_ == 0 ? no_error : packed_.give_back(buffer_, first()); }

}  // namespace ioweir::pnetcdf
