#include "format/access_records.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/utf8_text.hpp"
#include "format/event_codec.hpp"
#include "format/load.hpp"

namespace ioweir::format {
namespace {

constexpr std::int64_t farthest = std::int64_t{1} << 60;  ///< no size and no bound of a datatype lies beyond

template <typename T>
void append(std::string& key, const T& value) {
    key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <typename T>
void append(std::string& key, const std::vector<T>& values) {
    append(key, values.size());
    if (!values.empty()) key.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

bool can_be(std::int64_t value) { return value >= -farthest && value <= farthest; }

}  // namespace

AccessNumbers::AccessNumbers(Trace& trace) : trace_(trace) {
    trace_.datatypes.emplace_back();
    trace_.views.emplace_back();
    trace_.accesses.emplace_back();
}

std::uint32_t AccessNumbers::datatype(Datatype datatype) {
    std::string key = datatype.name;
    append(key, datatype.constructor);
    append(key, datatype.size);
    append(key, datatype.lower);
    append(key, datatype.extent);
    append(key, datatype.types);
    append(key, datatype.values);
    const auto [place, fresh] =
        datatypes_.try_emplace(std::move(key), static_cast<std::uint32_t>(trace_.datatypes.size()));
    if (fresh) trace_.datatypes.push_back(std::move(datatype));
    return place->second;
}

std::uint32_t AccessNumbers::view(View view) {
    std::string key = view.representation;
    append(key, view.displacement);
    append(key, view.etype);
    append(key, view.filetype);
    const auto [place, fresh] = views_.try_emplace(std::move(key), static_cast<std::uint32_t>(trace_.views.size()));
    if (fresh) trace_.views.push_back(std::move(view));
    return place->second;
}

std::uint32_t AccessNumbers::access(const Access& access) {
    trace_.accesses.push_back(access);
    return static_cast<std::uint32_t>(trace_.accesses.size() - 1);
}

void AccessRecords::add_type(std::uint64_t image, const std::byte* record, std::size_t size) {
    const auto fields = load<TypeRecord>(record);
    Type& type = images_[image].types[fields.type];
    if (fields.first == 0) type.fields = fields;
    type.parts.push_back({fields.first, fields.count, record + sizeof(TypeRecord), record + size});
}

void AccessRecords::add_view(std::uint64_t image, const std::byte* record, std::size_t size) {
    const auto fields = load<ViewRecord>(record);
    if (fields.displacement < 0 || !can_be(fields.displacement)) return;
    const char* text = reinterpret_cast<const char*>(record) + sizeof(ViewRecord);
    images_[image].views[fields.view] = {fields.displacement, fields.etype, fields.filetype,
                                         utf8_text({text, ::strnlen(text, size - sizeof(ViewRecord))}), true};
}

void AccessRecords::add_access(std::uint64_t image, const std::byte* record, std::size_t size) {
    Image& contents = images_[image];
    contents.accesses.push_back(load<AccessRecord>(record));
    const bool has_pointer = size >= sizeof(AccessRecord) + sizeof(std::int64_t);
    const std::int64_t pointer = has_pointer ? load<std::int64_t>(record + sizeof(AccessRecord)) : 0;
    contents.pointers.push_back(can_be(pointer) ? pointer : -1);
}

std::uint32_t AccessRecords::in_ancestry(std::uint64_t image, Numbers numbers, std::uint32_t number) const {
    for (std::size_t steps = 0; image != 0 && steps <= images_.size(); ++steps) {
        const auto at = images_.find(image);
        if (at == images_.end()) break;
        const auto& known = at->second.*numbers;
        if (const auto found = known.find(number); found != known.end()) return found->second;
        image = at->second.parent;
    }
    return 0;
}

std::vector<std::uint64_t> AccessRecords::ancestors_first() const {
    std::vector<std::pair<std::size_t, std::uint64_t>> order;
    for (const auto& [image, contents] : images_) {
        std::size_t depth = 0;
        std::uint64_t parent = contents.parent;
        for (; parent != 0 && depth <= images_.size(); ++depth) {
            const auto at = images_.find(parent);
            if (at == images_.end()) break;
            parent = at->second.parent;
        }
        order.emplace_back(depth, image);
    }
    std::sort(order.begin(), order.end());
    std::vector<std::uint64_t> images;
    for (const auto& [depth, image] : order) images.push_back(image);
    return images;
}

/// A type of which something is missing, or cannot be, is `other`, if its size can be.
Datatype AccessRecords::read_type(std::uint64_t image, std::uint32_t number, Type& type) const {
    const TypeRecord& fields = type.fields;
    Datatype read;
    if (!can_be(fields.size) || fields.size < 0 || !can_be(fields.lower) || !can_be(fields.extent)) return read;
    read.size = fields.size;
    read.lower = fields.lower;
    read.extent = fields.extent;
    constexpr auto other = static_cast<std::uint32_t>(Constructor::other);
    if (fields.constructor >= other || type.parts.empty()) return read;
    std::stable_sort(type.parts.begin(), type.parts.end(),
                     [](const Part& a, const Part& b) { return a.first < b.first; });
    const Part& first = type.parts.front();
    const auto room = static_cast<std::size_t>(first.end - first.begin);
    if (fields.constructor == static_cast<std::uint32_t>(Constructor::named)) {
        const char* text = reinterpret_cast<const char*>(first.begin);
        read.name = utf8_text({text, ::strnlen(text, room)});
        read.constructor = fields.constructor;
        return read;
    }
    if (fields.types > room / sizeof(std::uint32_t) || first.first != 0) return read;
    Datatype whole = read;
    for (std::size_t i = 0; i < fields.types; ++i) {
        const auto old = load<std::uint32_t>(first.begin + i * sizeof(std::uint32_t));
        const std::uint32_t found = old < number ? in_ancestry(image, &Image::type_numbers, old) : 0;
        if (found == 0) return read;
        whole.types.push_back(found);
    }
    std::int64_t value = 0;
    for (const Part& part : type.parts) {
        if (part.first != whole.values.size()) return read;
        const std::byte* const begin = &part == &first ? part.begin + fields.types * sizeof(std::uint32_t) : part.begin;
        codec::ByteReader reader(begin, part.end);
        for (std::uint32_t i = 0; i < part.count; ++i) {
            value = codec::sum(value, codec::unzigzag(reader.varint()));
            if (!reader.ok()) return read;
            whole.values.push_back(value);
        }
    }
    if (whole.values.size() != fields.values) return read;
    whole.constructor = fields.constructor;
    return whole;
}

void AccessRecords::settle(AccessNumbers& numbers, FunctionRef<Access(const Found&)> place) {
    for (const std::uint64_t image : ancestors_first()) {
        Image& contents = images_[image];
        for (auto& [number, type] : contents.types)  // ascending: those that a type is made from come before it
            contents.type_numbers[number] = numbers.datatype(read_type(image, number, type));
        for (const auto& [number, view] : contents.views) {
            View whole = view;
            whole.etype = in_ancestry(image, &Image::type_numbers, view.etype);
            whole.filetype = in_ancestry(image, &Image::type_numbers, view.filetype);
            contents.view_numbers[number] = numbers.view(std::move(whole));
        }
        for (std::size_t i = 0; i < contents.accesses.size(); ++i) {
            const AccessRecord& record = contents.accesses[i];
            Access access = place({image, record.access, record.file});
            access.handle = record.handle;
            access.ranks = record.ranks;
            access.pointer = contents.pointers[i];
            access.memory = in_ancestry(image, &Image::type_numbers, record.memory);
            access.view = record.view == 0 ? 0 : in_ancestry(image, &Image::view_numbers, record.view);
            access.has_view = record.view == 0 || access.view != 0;
            contents.access_numbers[record.access] = numbers.access(access);
        }
    }
}

std::uint32_t AccessRecords::number(std::uint64_t image, std::uint32_t access) const {
    return in_ancestry(image, &Image::access_numbers, access);
}

}  // namespace ioweir::format
