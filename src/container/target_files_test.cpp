// Subfiles where the storage is told on which target a file is to be when it is made: Lustre's OSTs by the stand-in for its library, CephFS's
// pools by attributes kept in memory. What does not live here: the drivers themselves (src/storage), who chooses targets (src/engine).
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "container/merge.hpp"
#include "container/testing.hpp"
#include "storage/ceph_targets.hpp"
#include "storage/lustre_targets.hpp"

namespace ioweir::container {
namespace {

namespace fs = std::filesystem;
using layout::StripeLayout;
using storage::Targets;

const std::string text = "aaaabbbbccccddddeeeeffffgggghhhhiiiijjjj";

/// A container of subfiles on targets, by target in the order of their numbers, as the engine makes it.
struct OnTargets {
    OnTargets(Targets& used, std::vector<std::int32_t> chosen)
        : targets(used), place({static_cast<std::int64_t>(chosen.size()), Shape::Kind::subfiles, 4}) {
        EXPECT_EQ(remove_subfiles(place.directory), 0);
        made = make_subfiles(place.directory, {}, [this, chosen](std::int64_t number, const std::string& path) {
            const std::int32_t target = chosen[static_cast<std::size_t>(number)];
            return targets.create(path, StripeLayout::unstriped(target), O_WRONLY, 0666);
        });
    }
    /// Written by one rank, and closed; `more` after stripes were dealt anew over these subfiles.
    void write(const std::vector<std::int64_t>& files, const std::string& more) {
        const auto generation = place.begin();
        const Role role{true, true, 0, 0, generation};
        auto writer = place.open(role);
        ASSERT_EQ(writer->write_at(-1, text.data(), std::ssize(text), 0).bytes, std::ssize(text));
        const Subfiles now = read_subfiles(place.directory).take();
        const auto next = redivide(place.directory, now, std::ssize(text) / 4, files, make_beside(now, files, targets));
        ASSERT_TRUE(next.ok()) << next.error().message();
        ASSERT_EQ(writer->reload(), 0);
        ASSERT_EQ(writer->write_at(-1, more.data(), std::ssize(more), std::ssize(text)).bytes, std::ssize(more));
        ASSERT_EQ(writer->leave(role), 0);
        ASSERT_EQ(keep_sizes(place.directory, read_subfiles(place.directory).value(), generation), 0);
        ASSERT_EQ(place.end(generation), 0);
    }
    [[nodiscard]] std::vector<std::int32_t> where() const {
        std::vector<std::int32_t> found;
        const Subfiles now = read_subfiles(place.directory).take();
        for (const std::string& path : now.paths) {
            const StripeLayout placement = targets.placement_of(path).take();
            EXPECT_EQ(placement.targets().size(), 1U);
            found.push_back(placement.targets().front());
        }
        return found;
    }
    void expect_whole(const std::string& wanted) {
        auto reader = place.open({true, false, 0, 0, 0});
        EXPECT_EQ(read_all(*reader, 200), wanted);
        reader.reset();
        EXPECT_TRUE(describe(place.path).value().problems.empty());
        EXPECT_EQ(merge(place.backend, place.path, place.path).value(), std::ssize(wanted));
        EXPECT_EQ(slurp(place.path), wanted);
        EXPECT_FALSE(fs::exists(place.directory.path));
    }

    Targets& targets;
    Place place;
    Result<Subfiles> made = Error{};
};

class SubfilesOnLustre : public testing::Test {
protected:
    void SetUp() override {
        library_ = ::dlopen(IOWEIR_FAKE_LUSTREAPI, RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(library_, nullptr) << ::dlerror();
        function<void()>("fake_forget_calls")();
        targets_ = storage::LustreTargets::open("/tmp", IOWEIR_FAKE_LUSTREAPI).take();
    }
    void TearDown() override {
        targets_.reset();
        EXPECT_EQ(function<int()>("fake_layouts_alive")(), 0);
        ::dlclose(library_);
    }
    template <typename F>
    F* function(const char* name) {
        return reinterpret_cast<F*>(::dlsym(library_, name));
    }
    std::string calls() { return function<const char*()>("fake_calls")(); }

    void* library_ = nullptr;
    std::unique_ptr<Targets> targets_;
};

TEST_F(SubfilesOnLustre, LieOnTheChosenOstsAlsoWhenDealtAnew) {
    OnTargets on(*targets_, {5, 0, 3});
    ASSERT_TRUE(on.made.ok()) << on.made.error().message();
    EXPECT_EQ(calls(),
              "count 1\nstripe 0 on 5\ncreate\ncount 1\nstripe 0 on 0\ncreate\ncount 1\nstripe 0 on 3\ncreate\n");
    EXPECT_EQ(on.where(), (std::vector<std::int32_t>{5, 0, 3}));
    on.write({2, 0}, "kkkkllll");
    EXPECT_EQ(on.where(), (std::vector<std::int32_t>{5, 0, 3, 3, 5}));
    on.expect_whole(text + "kkkkllll");
}

TEST_F(SubfilesOnLustre, ThatCannotBeMadeAreNamedAndNothingIsLeft) {
    const OnTargets on(*targets_, {5, 4, 3});  // there is no OST of index 4
    ASSERT_FALSE(on.made.ok());
    const std::string path = on.place.directory.path + "/subfile.1";
    EXPECT_NE(on.made.error().message().find(path + ": " + std::strerror(EINVAL)), std::string::npos)
        << on.made.error().message();
    EXPECT_FALSE(fs::exists(on.place.directory.path + "/subfile.0"));
    EXPECT_FALSE(fs::exists(on.place.directory.path + "/places"));
}

/// What a CephFS keeps of files, by their inodes.
struct Pools {
    std::map<std::uint64_t, std::map<std::string, std::string>> kept;

    storage::FileAttributes attributes() {
        return {[this](const char* path, const char* name, void* value, std::size_t room) -> std::int64_t {
                    if (std::strcmp(name, "ceph.dir.entries") == 0) return 1;
                    struct stat info{};
                    if (::stat(path, &info) != 0) return -ENOENT;
                    const auto& of_file = kept[info.st_ino];
                    const auto found = of_file.find(name);
                    if (found == of_file.end()) return -ENODATA;
                    const std::size_t bytes = std::min(room, found->second.size());
                    std::memcpy(value, found->second.data(), bytes);
                    return static_cast<std::int64_t>(found->second.size());
                },
                [this](int descriptor, const char* name, const void* value, std::size_t bytes) {
                    struct stat info{};
                    if (::fstat(descriptor, &info) != 0) return -EBADF;
                    if (info.st_size != 0) return -ENOTEMPTY;  // of a file that has bytes it cannot be changed
                    kept[info.st_ino][name] = std::string(static_cast<const char*>(value), bytes);
                    return 0;
                }};
    }
};

TEST(SubfilesOnCephFs, LieInTheChosenPoolsAlsoWhenDealtAnew) {
    Pools pools;
    storage::Manifest manifest;
    for (const char* const name : {"t0", "t1", "t2"}) {
        storage::ManifestTarget target;
        target.name = name;
        target.pool = std::string("pool-") + name;
        manifest.targets.push_back(target);
    }
    auto targets = storage::CephTargets::open("/tmp", manifest, pools.attributes()).take();
    OnTargets on(*targets, {2, 0});
    ASSERT_TRUE(on.made.ok()) << on.made.error().message();
    const auto pool_of = [&](std::int64_t number) {
        struct stat info{};
        const Subfiles now = read_subfiles(on.place.directory).take();
        EXPECT_EQ(::stat(now.path(number).c_str(), &info), 0);
        return pools.kept[info.st_ino]["ceph.file.layout.pool"];
    };
    EXPECT_EQ(pool_of(0), "pool-t2");
    EXPECT_EQ(pool_of(1), "pool-t0");
    on.write({0}, "kkkkllll");
    EXPECT_EQ(pool_of(2), "pool-t2");
    on.expect_whole(text + "kkkkllll");
}

}  // namespace
}  // namespace ioweir::container
