#include "partition/files/names.hpp"

#include <gtest/gtest.h>

namespace ioweir::partition {
namespace {

TEST(SetName, IsFoundFromEachOfItsNames) {
    for (const std::string base : {"restart", "run/restart", "/a-dat.3.d/b/re-dat.x"}) {
        for (const bool directories : {true, false}) {
            const SetName name{base, 12, directories};
            for (const std::string& path : {name.manifest(), name.file(0), name.file(41)}) {
                const auto found = set_of_path(path);
                ASSERT_TRUE(found.has_value()) << path;
                EXPECT_EQ(found->base, base) << path;
                EXPECT_EQ(found->step, 12);
                EXPECT_EQ(found->directories, directories);
            }
        }
        EXPECT_EQ(set_of_path(SetName{base, 12, true}.directory() + "/")->base, base);
    }
}

TEST(SetName, OtherNamesAreNone) {
    for (const char* const path :
         {"", "restart", "restart-dat", "restart-dat.", "restart-dat.1", "restart-dat.1.", "restart-dat.1.x",
          "restart-dat.x.1", "restart-dat.1.2.3", "restart-dat.1.1/other", ".d/"})
        EXPECT_FALSE(set_of_path(path).has_value()) << path;
}

TEST(SetName, LiesAsTheReferenceSays) {
    const SetName directories{"run/restart", 10, true}, flat{"run/restart", 10, false};
    EXPECT_EQ(directories.manifest(), "run/restart-dat.10.d/manifest");
    EXPECT_EQ(directories.file(1), "run/restart-dat.10.d/2/restart-dat.10.2");
    EXPECT_EQ(flat.manifest(), "run/restart-dat.10.set");
    EXPECT_EQ(flat.file(1), "run/restart-dat.10.2");
}

}  // namespace
}  // namespace ioweir::partition
