// Accesses of one trace file: collects its TypeRecords, ViewRecords and AccessRecords, and gives each datatype, view and access a
// number in the whole trace. Datatypes and views that are the same are one, whatever process they are of.
// What does not live here: which file extents follow (analysis/requests.hpp), recording (tracer/hooks/accesses.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/function_ref.hpp"
#include "format/reader.hpp"

namespace ioweir::format {

/// Numbers for datatypes and views that are shared by all files of a trace.
class AccessNumbers {
public:
    explicit AccessNumbers(Trace& trace);
    std::uint32_t datatype(Datatype datatype);
    std::uint32_t view(View view);
    std::uint32_t access(const Access& access);

private:
    Trace& trace_;
    std::unordered_map<std::string, std::uint32_t> datatypes_;
    std::unordered_map<std::string, std::uint32_t> views_;
};

class AccessRecords {
public:
    /// `parent`: the image it was forked from, 0 without one; it goes on using that one's numbers.
    void add_image(std::uint64_t image, std::uint64_t parent) { images_[image].parent = parent; }
    /// `record`: the bytes of a record of `size` bytes, which the caller has checked to be there.
    void add_type(std::uint64_t image, const std::byte* record, std::size_t size);
    void add_view(std::uint64_t image, const std::byte* record, std::size_t size);
    void add_access(std::uint64_t image, const std::byte* record, std::size_t size);

    /// An access before it has a number in the trace.
    struct Found {
        std::uint64_t image;
        std::uint32_t access;  ///< a number of the file ids'
        std::uint32_t file;    ///< file id
    };
    /// Once every record is in. `place` tells of an access the process and the path that it has in the trace, and is told
    /// accesses in no order.
    void settle(AccessNumbers& numbers, FunctionRef<Access(const Found&)> place);

    /// Index into Trace::accesses of what `image` calls `access`; 0 when it is none.
    [[nodiscard]] std::uint32_t number(std::uint64_t image, std::uint32_t access) const;

private:
    struct Part {
        std::uint32_t first = 0;
        std::uint32_t count = 0;
        const std::byte* begin = nullptr;
        const std::byte* end = nullptr;
    };
    struct Type {
        TypeRecord fields{};
        std::vector<Part> parts;
    };
    struct Image {
        std::uint64_t parent = 0;
        std::map<std::uint32_t, Type> types;
        std::unordered_map<std::uint32_t, View> views;  ///< with the image's numbers of types
        std::vector<AccessRecord> accesses;
        std::vector<std::int64_t> pointers;
        std::unordered_map<std::uint32_t, std::uint32_t> type_numbers;
        std::unordered_map<std::uint32_t, std::uint32_t> view_numbers;
        std::unordered_map<std::uint32_t, std::uint32_t> access_numbers;
    };
    using Numbers = std::unordered_map<std::uint32_t, std::uint32_t> Image::*;
    /// What an image or its nearest ancestor that has it calls `number`; 0 when none has.
    [[nodiscard]] std::uint32_t in_ancestry(std::uint64_t image, Numbers numbers, std::uint32_t number) const;
    [[nodiscard]] std::vector<std::uint64_t> ancestors_first() const;
    [[nodiscard]] Datatype read_type(std::uint64_t image, std::uint32_t number, Type& type) const;

    std::unordered_map<std::uint64_t, Image> images_;
};

}  // namespace ioweir::format
