// An access of the program to a divided variable: checked, and its buffer packed.
// What does not live here: what becomes of it (data.cpp), how it is carried out (exchange.cpp).
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "adapters/pnetcdf/exchange.hpp"
#include "adapters/pnetcdf/file.hpp"
#include "ncsub/call_form.hpp"
#include "ncsub/header.hpp"
#include "ncsub/linear.hpp"

namespace ioweir::pnetcdf {

/// A datatype that stays when the program frees its own.
class KeptType {
public:
    KeptType() = default;
    explicit KeptType(MPI_Datatype type) { kept_ = PMPI_Type_dup(type, &type_) == MPI_SUCCESS; }
    ~KeptType() {
        if (kept_) PMPI_Type_free(&type_);
    }
    KeptType(KeptType&& other) noexcept : type_(other.type_), kept_(std::exchange(other.kept_, false)) {}
    KeptType& operator=(KeptType&& other) noexcept {
        std::swap(type_, other.type_);
        std::swap(kept_, other.kept_);
        return *this;
    }
    KeptType(const KeptType&) = delete;
    KeptType& operator=(const KeptType&) = delete;
    [[nodiscard]] bool ok() const { return kept_; }
    [[nodiscard]] MPI_Datatype get() const { return type_; }

private:
    MPI_Datatype type_{};
    bool kept_ = false;
};

/// The program's buffer.
struct Buffer {
    std::byte* data = nullptr;
    MPI_Datatype type{};
    Offset count = 0;  ///< items of the type
    ncsub::Element element = ncsub::Element::schar;
    bool plain = true;  ///< elements one behind the other
    const Offset* map = nullptr;
};

/// The elements of a buffer one behind the other: the buffer itself where they are so.
class Packed {
public:
    /// Packs what the program writes, or makes room for what it reads. `copy`: the buffer may change before it is used. 0 or an error.
    [[nodiscard]] int open(const Buffer& buffer, const ncsub::RequestView& first, std::int64_t elements, bool writing,
                           bool copy);
    /// Puts what was read where it belongs.
    [[nodiscard]] int give_back(const Buffer& buffer, const ncsub::RequestView& first) const;
    [[nodiscard]] std::byte* data() { return own_.empty() ? data_ : own_.data(); }

private:
    [[nodiscard]] int pack(const Buffer& buffer, std::vector<std::byte>& to) const;
    [[nodiscard]] int unpack(const Buffer& buffer, const std::vector<std::byte>& from) const;

    std::byte* data_ = nullptr;
    std::vector<std::byte> own_;
    std::vector<std::int64_t> map_;
};

class Access {
public:
    /// What a call asks for. With an error() it asks for nothing. `header`: of the one file, with the variable.
    Access(const File& file, const ncsub::Header& header, const Call& call, const ncsub::CallForm& form);
    [[nodiscard]] int error() const { return error_; }
    [[nodiscard]] bool writes() const { return writes_; }
    [[nodiscard]] std::int64_t elements() const { return elements_; }
    /// That the file has at least when it was carried out.
    [[nodiscard]] std::int64_t records() const { return records_; }
    /// Bytes that it takes of a buffer for bput: as many as in the file.
    [[nodiscard]] std::int64_t bytes_in_file() const { return elements_ * ncsub::bytes_of(type_); }
    /// The call's. By a file type it may want elements of others.
    [[nodiscard]] int variable() const { return variable_; }

    /// NC_ERANGE where the library says it of what is to be written: it says so when a request is begun. Else 0.
    [[nodiscard]] int range_error(const File& file);

    /// Adds what it wants, which leads into this object. `number`: of this access among those that are carried out together.
    void add_to(std::vector<Wanted>& wanted, int number = 0);
    /// After it was carried out: the program's buffer has what was read.
    [[nodiscard]] int finish() const;

private:
    /// Requests for one variable, whose numbers are behind those of the one before.
    struct Part {
        int variable = 0;
        std::size_t dimensions = 0;
        std::int64_t requests = 0;
    };

    /// Finds out what is wanted, by lists of numbers or by a file type. 0 or an error.
    int find_elements(const File& file, const ncsub::Header& header, const Call& call, const ncsub::CallForm& form,
                      bool& no_counts);
    /// The lists of numbers. 0 or an error. Without counts that must be there requests are of one element, and `no_counts` is set: what is wrong with
    /// where they begin is said first.
    int take_lists(const File& file, const ncsub::Header& header, const Call& call, const ncsub::CallForm& form,
                   bool& no_counts);
    /// Null: ones.
    void add_request(const Offset* start, const Offset* count, const Offset* stride, std::size_t dimensions);
    /// Calls visit(variable, request), in their order.
    template <typename Visit>
    void for_each_request(Visit&& visit) const {
        const std::int64_t* at = numbers_.data();
        for (const Part& part : parts_)
            for (std::int64_t i = 0; i < part.requests; ++i) {
                visit(part.variable, view(at, part.dimensions));
                at += part.dimensions * (strides_ ? 3 : 2);
            }
    }
    [[nodiscard]] ncsub::RequestView view(const std::int64_t* at, std::size_t dimensions) const {
        return {at, at + dimensions, strides_ ? at + 2 * dimensions : nullptr, dimensions};
    }
    [[nodiscard]] ncsub::RequestView first() const { return view(numbers_.data(), parts_.front().dimensions); }

    int error_ = no_error;
    bool writes_ = false;
    bool strides_ = false;  ///< the numbers of requests have some
    int variable_ = 0;
    ncsub::Type type_ = ncsub::Type::byte;
    std::int64_t elements_ = 0;
    std::int64_t records_ = 0;
    std::vector<Part> parts_;
    std::vector<std::int64_t> numbers_;  ///< of each request: starts, counts, strides
    Buffer buffer_;
    KeptType kept_;
    Packed packed_;
};

}  // namespace ioweir::pnetcdf
