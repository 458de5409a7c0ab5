// The Lustre driver against a stand-in for liblustreapi (fake_lustreapi.cpp): which calls it makes, in which order, with which values.
// That a Lustre does what it is told by them is believed.
#include "storage/lustre_targets.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "base/testing.hpp"

namespace ioweir::storage {
namespace {

using layout::StripeLayout;

class Lustre : public ::testing::Test {
protected:
    void SetUp() override {
        library_ = ::dlopen(IOWEIR_FAKE_LUSTREAPI, RTLD_NOW | RTLD_LOCAL);
        ASSERT_NE(library_, nullptr) << ::dlerror();
        function<void()>("fake_forget_calls")();
        targets_ = LustreTargets::open(folder_.path(), IOWEIR_FAKE_LUSTREAPI).take();
    }
    void TearDown() override {
        targets_.reset();
        EXPECT_EQ(function<int()>("fake_layouts_alive")(), 0);  // every layout was freed
        ::dlclose(library_);
    }
    template <typename F>
    F* function(const char* name) {
        return reinterpret_cast<F*>(::dlsym(library_, name));
    }
    std::string calls() { return function<const char*()>("fake_calls")(); }

    TemporaryFolder folder_;
    void* library_ = nullptr;
    std::unique_ptr<Targets> targets_;
};

TEST_F(Lustre, OstsAreListedWithThoseThatAreNotThere) {
    ASSERT_EQ(targets_->list().size(), 6U);
    EXPECT_EQ(targets_->list()[0].name, "lab-OST0000");
    EXPECT_EQ(targets_->list()[5].name, "lab-OST0005");
    EXPECT_EQ(targets_->list()[5].unusable, "");
    EXPECT_EQ(targets_->list()[4].unusable, "there is no OST of index 4");
    EXPECT_TRUE(targets_->abilities().stripes);
    EXPECT_STREQ(targets_->kind(), "lustre");
}

TEST_F(Lustre, AFileIsStripedOverChosenTargetsFromAChosenOne) {
    const StripeLayout wanted = StripeLayout::make(1 << 20, {5, 0, 3}, 1).take();
    const Opened made = targets_->create(folder_.file("a"), wanted, O_WRONLY, 0640);
    ASSERT_EQ(made.error, 0);
    struct stat info{};
    ASSERT_EQ(::fstat(made.descriptor, &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0640U);
    ::close(made.descriptor);
    EXPECT_EQ(calls(), "count 3\nsize 1048576\nstripe 0 on 0\nstripe 1 on 3\nstripe 2 on 5\ncreate\n");
    const StripeLayout read = targets_->placement_of(folder_.file("a")).take();
    for (const std::int64_t offset : {0, 1 << 20, 2 << 20, 3 << 20, 100 << 20})
        EXPECT_EQ(read.target_of(offset), wanted.target_of(offset)) << offset;
}

TEST_F(Lustre, AFileIsPlacedOnOneTarget) {
    const Opened made = targets_->create(folder_.file("a"), StripeLayout::unstriped(2), O_RDWR, 0600);
    ASSERT_EQ(made.error, 0);
    ::close(made.descriptor);
    EXPECT_EQ(calls(), "count 1\nstripe 0 on 2\ncreate\n");
    EXPECT_EQ(targets_->placement_of(folder_.file("a")).value().targets(), std::vector<std::int32_t>{2});
    EXPECT_EQ(targets_->create(folder_.file("a"), StripeLayout::unstriped(2), O_RDWR, 0600).error, EEXIST);
}

TEST_F(Lustre, WhatCannotBeDoneIsRefusedAndLeavesNothing) {
    for (const std::int32_t target : {4, 6, 100})
        EXPECT_EQ(targets_->create(folder_.file("a"), StripeLayout::unstriped(target), O_RDWR, 0600).error, EINVAL);
    EXPECT_EQ(calls(), "");
    EXPECT_EQ(targets_->create(folder_.file("a"), StripeLayout::make(1000, {0, 1}).take(), O_RDWR, 0600).error, EINVAL);
    EXPECT_NE(::access(folder_.file("a").c_str(), F_OK), 0);
    EXPECT_EQ(targets_->placement_of(folder_.file("a")).error().what, "cannot tell where a file lies");
}

TEST_F(Lustre, AnUnnamedFileIsOnItsTargetAndGone) {
    const Opened made = targets_->create_unnamed(3, O_WRONLY);
    ASSERT_EQ(made.error, 0);
    struct stat info{};
    ASSERT_EQ(::fstat(made.descriptor, &info), 0);
    EXPECT_EQ(info.st_nlink, 0U);
    ::close(made.descriptor);
    EXPECT_EQ(calls(), "count 1\nstripe 0 on 3\ncreate\n");
}

TEST(LustreLibrary, IsMissedWithARemedy) {
    const TemporaryFolder folder;
    EXPECT_EQ(LustreTargets::open(folder.path(), "/nowhere/liblustreapi.so").error().what,
              "a Lustre without its library");
    const auto wrong = LustreTargets::open(folder.path(), "libm.so.6");
    ASSERT_FALSE(wrong.ok());
    EXPECT_EQ(wrong.error().message(),
              "a liblustreapi that is too old: it has no llapi_get_obd_count; Lustre 2.7 or later is needed");
}

}  // namespace
}  // namespace ioweir::storage
