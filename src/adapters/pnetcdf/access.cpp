// An access of the program to a divided variable: what it asks for, and its buffer packed.
// What does not live here: how it is carried out (exchange.cpp).
#include "adapters/pnetcdf/element_types.hpp"
#include "adapters/pnetcdf/exchange.hpp"
#include "adapters/pnetcdf/file.hpp"
#include "base/checked.hpp"
#include "ncsub/call_form.hpp"

namespace ioweir::pnetcdf {
namespace {

using ncsub::CallForm;
using ncsub::Element;

const Offset* offsets(const Call& call, int place) {
    return place >= 0 ? __builtin_bit_cast(const Offset*, call.arguments[place]) : nullptr;
}

template <typename Type>
Type argument(const Call& call, int place) {
    if constexpr (sizeof(Type) == sizeof(Word))
        return __builtin_bit_cast(Type, call.arguments[place]);
    else
        return static_cast<Type>(call.arguments[place]);
}

/// The program's buffer.
struct Buffer {
    std::byte* data = nullptr;
    MPI_Datatype type{};
    Offset count = 0;       ///< items of the type
    Element element = Element::schar;
    bool plain = true;      ///< elements one behind the other
    const Offset* map = nullptr;
};

std::vector<std::int64_t> lengths_of(const File& file, int variable) {
    std::vector<std::int64_t> lengths;
    for (const std::int64_t id : file.logical.header.variables[static_cast<std::size_t>(variable)].dimensions)
        lengths.push_back(file.logical.header.dimensions[static_cast<std::size_t>(id)].length);
    return lengths;
}

/// The request in full: where the form leaves something out, it is the whole variable, one element, every element.
std::optional<ncsub::Request> request_of(const File& file, const Call& call, const CallForm& form, int variable) {
    const std::vector<std::int64_t> lengths = lengths_of(file, variable);
    const std::size_t n = lengths.size();
    ncsub::Request request{std::vector<std::int64_t>(n, 0), lengths, std::vector<std::int64_t>(n, 1)};
    const Offset* start = offsets(call, form.start());
    const Offset* count = offsets(call, form.count());
    const Offset* stride = offsets(call, form.stride());
    if ((form.start() >= 0 && start == nullptr) || (form.count() >= 0 && count == nullptr)) return std::nullopt;
    if (start != nullptr) request.start.assign(start, start + n);
    if (count != nullptr) request.count.assign(count, count + n);
    if (form.access == ncsub::Access::var1) request.count.assign(n, 1);
    if (stride != nullptr) request.stride.assign(stride, stride + n);
    return request;
}

/// Elements of a request whose counts may be anything; 0 where there is no such number.
std::int64_t elements_asked(const ncsub::Request& request) {
    std::int64_t product = 1;
    for (const std::int64_t n : request.count) {
        const auto next = n < 0 ? std::nullopt : checked_multiply(product, n);
        if (!next) return 0;
        product = *next;
    }
    return product;
}

int buffer_of(const File& file, const Call& call, const CallForm& form, int variable, std::int64_t elements,
              Buffer& buffer) {
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
        buffer.element = element_of(file.logical.header.variables[static_cast<std::size_t>(variable)].type);
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
    // A map leads to elements of a plain buffer; through a derived type as well it would be two maps.
    return buffer.map != nullptr && !decoded.plain ? error_unsupported : no_error;
}

/// What the library says of this request for the logical file: it is begun and given up there, which moves nothing.
int ask_library(const File& file, int variable, const ncsub::Request& request, const Buffer& buffer,
                std::int64_t elements) {
    const std::vector<Offset> start(request.start.begin(), request.start.end()),
        count(request.count.begin(), request.count.end()), stride(request.stride.begin(), request.stride.end());
    int number = -1, status = 0;
    const int code = file.library->iget_vars(file.ncid, variable, start.data(), count.data(), stride.data(),
                                             buffer.data, elements, mpi_type(buffer.element), &number);
    if (number >= 0) (void)file.library->cancel(file.ncid, 1, &number, &status);
    return code;
}

/// Packs what the program writes, or makes room for what it reads; the buffer itself where it is packed already.
class Packed {
public:
    int open(const Buffer& buffer, const ncsub::Request& request, std::int64_t elements, bool writing) {
        const auto element_bytes = static_cast<std::size_t>(ncsub::bytes_of(buffer.element));
        data_ = buffer.data;
        if (buffer.plain && buffer.map == nullptr) return no_error;
        own_.resize(static_cast<std::size_t>(elements) * element_bytes);
        data_ = own_.data();
        if (buffer.map == nullptr) {
            const auto bytes = checked_cast<int>(own_.size());
            const auto count = checked_cast<int>(buffer.count);
            if (!bytes || !count) return error_overflow;
            int at = 0;
            if (writing &&
                PMPI_Pack(buffer.data, *count, buffer.type, own_.data(), *bytes, &at, MPI_COMM_SELF) != MPI_SUCCESS)
                return error_element_type;
            return no_error;
        }
        map_.assign(buffer.map, buffer.map + request.count.size());
        if (writing) ncsub::pack_mapped(request.count, map_, element_bytes, buffer.data, own_.data());
        return no_error;
    }
    int give_back(const Buffer& buffer, const ncsub::Request& request) {
        if (own_.empty()) return no_error;
        int at = 0;
        if (buffer.map != nullptr)
            ncsub::unpack_mapped(request.count, map_, static_cast<std::size_t>(ncsub::bytes_of(buffer.element)),
                                 own_.data(), buffer.data);
        else if (PMPI_Unpack(own_.data(), static_cast<int>(own_.size()), &at, buffer.data,
                             static_cast<int>(buffer.count), buffer.type, MPI_COMM_SELF) != MPI_SUCCESS)
            return error_element_type;
        return no_error;
    }
    [[nodiscard]] std::byte* data() { return data_; }

private:
    std::byte* data_ = nullptr;
    std::vector<std::byte> own_;
    std::vector<std::int64_t> map_;
};

/// Why a call is not carried out in this version; empty: it is.
std::string why_not(const File& file, const CallForm& form) {
    if (!form.blocking()) return "non-blocking calls, and those for several variables, are not";
    if (form.access == ncsub::Access::varn || form.access == ncsub::Access::vard) return "varn and vard calls are not";
    if (!form.collective && file.state == File::State::independent) return "independent calls are not";
    return {};
}

}  // namespace

int access_variable(File& file, const Call& call) {
    const CallForm form = *ncsub::parse_call(call.symbol);
    if (const std::string why = why_not(file, form); !why.empty()) {
        const std::string text = std::string(call.symbol) + " was refused: variable " +
                                 file.logical.header.variables[argument<std::size_t>(call, 1) & 0xffff'ffffU].name +
                                 " is divided over subfiles, and in this version " + why +
                                 "; let it stay whole (min_ndims), or write the file without subfiles";
        complain(file, text);
        return error_unsupported;
    }
    const auto variable = argument<int>(call, 1);
    if (file.state == File::State::define) return error_in_define;
    if (!form.collective) return error_collective;
    if (file.state == File::State::independent) return error_independent;

    // A rank whose arguments are wrong takes part all the same, with nothing.
    int error = form.writes() && !file.writable ? error_permission : no_error;
    const auto request = request_of(file, call, form, variable);
    if (error == no_error && !request) error = error_coordinates;
    const std::int64_t elements = request ? elements_asked(*request) : 0;
    Buffer buffer;
    if (error == no_error) error = buffer_of(file, call, form, variable, elements, buffer);
    if (error == no_error) error = ask_library(file, variable, *request, buffer, elements);
    Packed packed;
    if (error == no_error) error = packed.open(buffer, *request, elements, form.writes());
    std::vector<Wanted> wanted;
    if (error == no_error && elements > 0)
        wanted.push_back({variable, buffer.element, *request, packed.data(), packed.data(), no_error});
    const int failure = exchange(file, wanted, form.writes());
    if (error != no_error) return error;
    if (failure != no_error) return failure;
    const int result = wanted.empty() ? no_error : wanted.front().error;
    if (!form.writes() && !wanted.empty()) error = packed.give_back(buffer, *request);
    return result != no_error ? result : error;
}

}  // namespace ioweir::pnetcdf
