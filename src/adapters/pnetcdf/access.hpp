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
    [[nodiscard]] int open(const Buffer& buffer, const ncsub::Request& first, std::int64_t elements, bool writing,
                           bool copy);
    /// Puts what was read where it belongs.
    [[nodiscard]] int give_back(const Buffer& buffer, const ncsub::Request& first) const;
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

    /// Adds what it wants, which leads into this object.
    void add_to(std::vector<Wanted>& wanted);
    /// After it was carried out: the program's buffer has what was read.
    [[nodiscard]] int finish() const;

private:
    /// Finds out what is wanted, by lists of numbers or by a file type. 0 or an error.
    int find_elements(const File& file, const ncsub::Header& header, const Call& call, const ncsub::CallForm& form,
                      bool& no_counts);
    [[nodiscard]] const ncsub::Request& first() const { return wanted_.front().requests.front(); }

    int error_ = no_error;
    bool writes_ = false;
    int variable_ = 0;
    ncsub::Type type_ = ncsub::Type::byte;
    std::int64_t elements_ = 0;
    std::int64_t records_ = 0;
    std::vector<ncsub::Elements> wanted_;
    Buffer buffer_;
    KeptType kept_;
    Packed packed_;
};

}  // namespace ioweir::pnetcdf
