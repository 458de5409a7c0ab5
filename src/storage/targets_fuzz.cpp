// Fuzzes what storage says of itself: manifests of targets, and the layouts that file systems give in extended attributes.
// An input: a byte (0: a manifest, 1: Lustre's attribute, 2: CephFS's), and the text; of CephFS three of 32 bytes.
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/fuzz_input.hpp"
#include "base/fuzz_target.hpp"
#include "storage/file_layout.hpp"
#include "storage/manifest.hpp"

namespace ioweir {
namespace {

void read_manifest(const std::string& text) {
    const auto parsed = storage::parse_manifest(text, "manifest.toml");
    if (!parsed) {
        require(!parsed.error().what.empty(), "an error without words");
        require(parsed.error().message().size() < 1000 + 8 * text.size(), "an error much longer than the text");
        return;
    }
    const storage::Manifest& manifest = parsed.value();
    require(!manifest.targets.empty() && manifest.targets.size() <= text.size(), "the number of targets");
    require(manifest.state.empty() || manifest.state.front() == '/', "an absolute path");
    for (std::size_t i = 0; i < manifest.targets.size(); ++i) {
        const storage::ManifestTarget& target = manifest.targets[i];
        require(!target.name.empty() && target.rate >= 0, "a target's name and rate");
        require(target.directory.empty() == manifest.cephfs && target.pool.empty() != manifest.cephfs,
                "a target's place");
        require(target.rate == 0 || !manifest.state.empty(), "a rate with a state");
        for (std::size_t j = 0; j < i; ++j) {
            const storage::ManifestTarget& other = manifest.targets[j];
            require(other.name != target.name, "each name once");
            require(other.directory != target.directory || other.pool != target.pool, "each place once");
        }
    }
}

std::int64_t give(std::string_view bytes, void* value, std::size_t room) {
    if (bytes.size() > room) return -34;  // ERANGE
    if (!bytes.empty()) std::memcpy(value, bytes.data(), bytes.size());
    return static_cast<std::int64_t>(bytes.size());
}

void check_layout(const storage::FileLayout& layout) {
    require(layout.stripe_bytes >= 0 && layout.stripe_count >= 0, "the numbers of a layout");
    require(layout.told_by != storage::Teller::nobody || layout == storage::FileLayout{}, "nobody tells nothing");
    const auto take_all = [](const char*, const void*, std::size_t bytes) { return bytes > 0 ? 0 : -22; };
    if (layout.told_by == storage::Teller::cephfs)
        require(storage::write_layout({}, layout, take_all) == 0, "a layout that is read can be asked for");
}

void read_lustre(const std::string& text) {
    check_layout(storage::read_layout([&](const char* name, void* value, std::size_t room) -> std::int64_t {
        return std::string_view(name) == "lustre.lov" ? give(text, value, room) : -61;  // ENODATA
    }));
}

void read_ceph(FuzzInput& input) {
    const std::string unit = input.text(32), count = input.text(32), object = input.text(32);
    check_layout(storage::read_layout([&](const char* name, void* value, std::size_t room) -> std::int64_t {
        const std::string_view wanted(name);
        if (wanted.ends_with("stripe_unit")) return give(unit, value, room);
        if (wanted.ends_with("stripe_count")) return give(count, value, room);
        return wanted.ends_with("object_size") ? give(object, value, room) : -61;
    }));
}

std::string plain_lustre(std::uint32_t magic) {
    FuzzSeed seed;
    seed.number<std::uint32_t>(magic).number<std::uint32_t>(1).text(std::string(16, '\0'));
    return seed.number<std::uint32_t>(1 << 20).number<std::uint16_t>(4).number<std::uint16_t>(0).bytes();
}

std::string composite_lustre() {
    FuzzSeed seed;
    seed.number<std::uint32_t>(0x0BD60BD0).number<std::uint32_t>(192).number<std::uint32_t>(1).number<std::uint16_t>(0);
    seed.number<std::uint16_t>(2).text(std::string(16, '\0'));
    for (const std::uint32_t i : {0U, 1U}) {
        seed.number<std::uint32_t>(i + 1).number<std::uint32_t>(0).number<std::uint64_t>(i << 20);
        seed.number<std::uint64_t>(1 << 21).number<std::uint32_t>(128 + 32 * i).number<std::uint32_t>(32);
        seed.text(std::string(16, '\0'));
    }
    return seed.text(plain_lustre(0x0BD10BD0)).text(plain_lustre(0x0BD30BD0)).bytes();
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
    const auto padded = [](std::string text) {
        text.resize(32, ' ');
        return text;
    };
    return {std::string(1, '\0') +
                "kind = \"directories\"\nstate = \"/dev/shm/x\"\n[[target]]\nname = \"t0\"\ndirectory = \"a\"\nrate = "
                "\"25 MB\"\n"
                "[[target]]\nname = \"t1\"\ndirectory = \"/b\"\nmounted = true\n",
            std::string(1, '\0') + "kind = \"cephfs\"\n[[target]]\nname = \"p\"\npool = \"data\"\n",
            std::string(1, '\1') + plain_lustre(0x0BD10BD0),
            std::string(1, '\1') + composite_lustre(),
            std::string(1, '\2') + padded("4194304") + padded("4") + padded("4194304"),
            std::string(1, '\2') + padded("65536") + padded("1") + "8388608"};
}

}  // namespace ioweir

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace ioweir;
    FuzzInput input(data, size);
    const auto what = input.number<std::uint8_t>() % 3;
    if (what == 0) read_manifest(input.rest());
    if (what == 1) read_lustre(input.rest());
    if (what == 2) read_ceph(input);
    return 0;
}
