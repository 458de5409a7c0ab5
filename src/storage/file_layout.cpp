#include "storage/file_layout.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

namespace ioweir::storage {
namespace {

// lustre_user.h: struct lov_user_md_v1 {u32 magic, pattern; char id[16]; u32 stripe_size; u16 stripe_count; ...}, of which version 3
// differs only behind these; struct lov_comp_md_v1 {u32 magic, size, generation; u16 flags, entries; char rest[16]} and its entries
// {u32 id, flags; u64 begin, end; u32 offset, size; char rest[16]}. In the byte order of the host.
constexpr std::uint32_t lov_user_magic_v1 = 0x0BD10BD0;
constexpr std::uint32_t lov_user_magic_v3 = 0x0BD30BD0;
constexpr std::uint32_t lov_user_magic_composite = 0x0BD60BD0;
constexpr std::uint32_t pattern_raid0 = 1;
constexpr std::uint32_t entry_is_stale = 1;
constexpr std::uint16_t all_stripes = 0xffff;
constexpr std::size_t composite_header_bytes = 32;
constexpr std::size_t composite_entry_bytes = 48;
constexpr std::size_t largest_attribute = 65536;  // XATTR_SIZE_MAX

/// A value within bytes that may be too short.
class Bytes {
public:
    Bytes(const std::byte* data, std::size_t size) : data_(data), size_(size) {}
    template <typename T>
    [[nodiscard]] std::optional<T> at(std::size_t place) const {
        if (place > size_ || size_ - place < sizeof(T)) return std::nullopt;
        T value;
        std::memcpy(&value, data_ + place, sizeof value);
        return value;
    }
    [[nodiscard]] Bytes from(std::size_t place) const {
        const std::size_t begin = std::min(place, size_);
        return {data_ + begin, size_ - begin};
    }

private:
    const std::byte* data_;
    std::size_t size_;
};

FileLayout plain_lustre(const Bytes& bytes) {
    const auto pattern = bytes.at<std::uint32_t>(4);
    const auto size = bytes.at<std::uint32_t>(24);
    const auto count = bytes.at<std::uint16_t>(28);
    if (!pattern || !size || !count || (*pattern & 0xffff) != pattern_raid0 || *size == 0) return {};
    return {*size, *count == all_stripes ? 0 : *count, Teller::lustre};
}

FileLayout lustre(const Bytes& bytes) {
    const std::uint32_t magic = bytes.at<std::uint32_t>(0).value_or(0);
    if (magic == lov_user_magic_v1 || magic == lov_user_magic_v3) return plain_lustre(bytes);
    if (magic != lov_user_magic_composite) return {};
    FileLayout last;
    std::uint64_t furthest = 0;
    const std::uint16_t entries = bytes.at<std::uint16_t>(14).value_or(0);
    for (std::size_t i = 0; i < entries; ++i) {
        const Bytes entry = bytes.from(composite_header_bytes + i * composite_entry_bytes);
        const auto flags = entry.at<std::uint32_t>(4);
        const auto begin = entry.at<std::uint64_t>(8);
        const auto offset = entry.at<std::uint32_t>(24);
        if (!flags || !begin || !offset || (*flags & entry_is_stale) != 0) continue;
        const FileLayout part = plain_lustre(bytes.from(*offset));
        if (part.stripe_bytes == 0 || (last.stripe_bytes > 0 && *begin <= furthest)) continue;
        last = part;
        furthest = *begin;
    }
    return last;
}

std::int64_t ceph_number(AttributeReader read, const char* name) {
    std::array<char, 32> text{};
    const std::int64_t length = read(name, text.data(), text.size());
    std::int64_t number = 0;
    if (length <= 0 || length > std::ssize(text)) return 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + length, number);
    return failure == std::errc{} && number > 0 ? number : 0;
}

}  // namespace

const char* name_of(Teller teller) {
    return teller == Teller::lustre ? "Lustre" : teller == Teller::cephfs ? "CephFS" : "nobody";
}

FileLayout read_layout(AttributeReader read) {
    const auto value = std::make_unique<std::array<std::byte, largest_attribute>>();
    const std::int64_t length = read("lustre.lov", value->data(), value->size());
    if (length > 0 && length <= std::ssize(*value)) return lustre({value->data(), static_cast<std::size_t>(length)});
    const std::int64_t unit = ceph_number(read, "ceph.file.layout.stripe_unit");
    if (unit == 0) return {};
    const std::int64_t count = ceph_number(read, "ceph.file.layout.stripe_count");
    if (count > 1) return {unit, count, Teller::cephfs};
    const std::int64_t object = ceph_number(read, "ceph.file.layout.object_size");
    return {std::max(unit, object), 0, Teller::cephfs};
}

int write_layout(const FileLayout& wanted, const FileLayout& now, AttributeWriter write) {
    if (now.told_by != Teller::cephfs) return ENOTSUP;
    // In one piece: of single values some are refused because they do not fit the others yet. Objects are a multiple of the stripe unit.
    const std::int64_t unit = wanted.stripe_bytes > 0 ? wanted.stripe_bytes : now.stripe_bytes;
    const std::int64_t count =
        std::max<std::int64_t>(1, wanted.stripe_count > 0 ? wanted.stripe_count : now.stripe_count);
    constexpr std::int64_t usual_object_bytes = 4 << 20;
    const std::int64_t object = count == 1 ? unit : std::max(unit, usual_object_bytes / unit * unit);
    const std::string text = "stripe_unit=" + std::to_string(unit) + " stripe_count=" + std::to_string(count) +
                             " object_size=" + std::to_string(object);
    return -write("ceph.file.layout", text.data(), text.size());
}

}  // namespace ioweir::storage
