// What is kept of a probe: it reads back, and nothing is believed that somebody else, another time or damage may have left.
#include "probe/cache.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/testing.hpp"
#include "storage/directory_targets.hpp"

namespace ioweir::probe {
namespace {

namespace fs = std::filesystem;

class CacheTest : public testing::Test {
protected:
    std::unique_ptr<storage::Targets> targets_of(const std::vector<std::string>& names) {
        storage::Manifest manifest;
        for (const std::string& name : names) manifest.targets.push_back({name, name, "", 0, false});
        return storage::DirectoryTargets::open(folder_.path(), manifest).take();
    }
    [[nodiscard]] std::string text() const {
        std::ifstream stream(path_);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
    void spill(const std::string& bytes) const { std::ofstream(path_, std::ios::trunc) << bytes; }

    TemporaryFolder folder_;
    const std::string path_ = std::string(folder_.path()) + "/a/b/ioweir/kept";
    const std::vector<double> rates_ = {1.5e7, 0, 12345678.90123};
};

TEST_F(CacheTest, ReadsBackWhatItKeepsForAsLongAsAsked) {
    EXPECT_FALSE(read_cache(path_, 3, 1000, 60)) << "there is none";
    ASSERT_EQ(write_cache(path_, rates_, 1000), 0);
    const auto kept = read_cache(path_, 3, 1060, 60);
    ASSERT_TRUE(kept.has_value());
    EXPECT_EQ(kept->rates, rates_);
    EXPECT_EQ(kept->age_s, 60);
    EXPECT_FALSE(read_cache(path_, 3, 1061, 60)) << "too old";
    EXPECT_FALSE(read_cache(path_, 3, 999, 60)) << "from the future";
    EXPECT_FALSE(read_cache(path_, 2, 1000, 60)) << "of other targets";
    ASSERT_EQ(write_cache(path_, {1, 2, 3}, 2000), 0);
    EXPECT_EQ(read_cache(path_, 3, 2000, 0)->rates, (std::vector<double>{1, 2, 3}));
    EXPECT_EQ(std::distance(fs::directory_iterator(fs::path(path_).parent_path()), {}), 1) << "no draft is left";
    EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(CacheTest, BelievesNothingThatMayBeSomebodyElses) {
    ASSERT_EQ(write_cache(path_, rates_, 1000), 0);
    const std::string whole = text();
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        spill(damaged);
        EXPECT_FALSE(read_cache(path_, 3, 1000, 60)) << "byte " << at;
        spill(whole.substr(0, at));
        EXPECT_FALSE(read_cache(path_, 3, 1000, 60)) << "cut at " << at;
    }
    spill(whole);
    ASSERT_TRUE(read_cache(path_, 3, 1000, 60).has_value());
    for (const auto more : {fs::perms::group_write, fs::perms::others_write}) {
        fs::permissions(path_, more, fs::perm_options::add);
        EXPECT_FALSE(read_cache(path_, 3, 1000, 60)) << "others may write it";
        fs::permissions(path_, more, fs::perm_options::remove);
    }
    fs::rename(path_, path_ + ".real");
    fs::create_symlink(path_ + ".real", path_);
    EXPECT_FALSE(read_cache(path_, 3, 1000, 60)) << "a link";
    EXPECT_NE(write_cache(std::string(folder_.path()) + "/a/b/ioweir/kept.real/c/d", rates_, 1), 0);
}

TEST_F(CacheTest, TargetsAndWayOfProbingHaveAFileEach) {
    ASSERT_EQ(::setenv("XDG_CACHE_HOME", "/cache", 1), 0);
    const auto two = targets_of({"a", "b"});
    const std::string file = cache_file(*two, {});
    EXPECT_TRUE(file.starts_with("/cache/ioweir/job-probe-"));
    EXPECT_EQ(cache_file(*targets_of({"a", "b"}), {}), file);
    EXPECT_NE(cache_file(*targets_of({"a", "c"}), {}), file);
    Options longer;
    longer.window_ns *= 2;
    EXPECT_NE(cache_file(*two, longer), file);
    ASSERT_EQ(::setenv("XDG_CACHE_HOME", "relative", 1), 0);
    ASSERT_EQ(::setenv("HOME", "/home/user", 1), 0);
    EXPECT_TRUE(cache_file(*two, {}).starts_with("/home/user/.cache/ioweir/job-probe-"));
    ASSERT_EQ(::unsetenv("HOME"), 0);
    EXPECT_EQ(cache_file(*two, {}), "");
}

}  // namespace
}  // namespace ioweir::probe
