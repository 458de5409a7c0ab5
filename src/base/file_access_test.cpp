// Who may use a file, given to another: modes, groups, ACLs, and where the kernel does not let the caller give it away.
#include "base/file_access.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/guarded_files.hpp"
#include "base/testing.hpp"

namespace ioweir::guarded {
namespace {

struct AccessOfFiles : testing::Test {
    TemporaryFolder folder;
    Folder in = Folder::open(folder.path()).take();

    File make(const std::string& name, mode_t mode) {
        File file = in.file(name, O_RDWR | O_CREAT | O_EXCL, 0600).take();
        EXPECT_EQ(::fchmod(file.descriptor(), mode), 0);
        return file;
    }
    static mode_t mode_of(const File& file) {
        struct stat status{};
        EXPECT_EQ(::fstat(file.descriptor(), &status), 0);
        return status.st_mode & 07777;
    }
};

TEST_F(AccessOfFiles, ALockIsOfThoseWhoMayWrite) {
    FileAccess access{1, 2, 6, 4, 6};
    access.mask = 6;
    access.named = {{false, 10, 4}, {false, 11, 6}, {true, 12, 2}};
    const FileAccess lock = access.of_lock();
    EXPECT_EQ(lock.of_owner, 6U);
    EXPECT_EQ(lock.of_group, 0U);
    EXPECT_EQ(lock.of_others, 6U);
    EXPECT_EQ(lock.named, (std::vector<FileAccess::Named>{{false, 10, 0}, {false, 11, 6}, {true, 12, 2}}));
    access.mask = 4;  // nobody named may write
    EXPECT_EQ(access.of_lock().mask, 0U);
}

TEST_F(AccessOfFiles, AModeIsGivenWithoutTheRightToExecute) {
    const File from = make("from", 0751), to = make("to", 0666);
    ASSERT_EQ(give_access(to.descriptor(), access_of(from.descriptor()).access.of_part()), 0);
    EXPECT_EQ(mode_of(to), 0640U);
    ASSERT_EQ(give_access(to.descriptor(), access_of(from.descriptor()).access), 0);
    EXPECT_EQ(mode_of(to), 0751U);
}

TEST_F(AccessOfFiles, AFolderCanBePassedByThoseWhoMayReadOrWrite) {
    FileAccess access{::geteuid(), ::getegid(), 0, 4, 2};
    EXPECT_EQ(access.of_folder().mode(), 0753U);
    access.of_group = access.of_others = 0;
    EXPECT_EQ(access.of_folder().mode(), 0700U);
}

TEST_F(AccessOfFiles, AnAclIsGivenAndTakenAway) {
    const File from = make("from", 0600), to = make("to", 0644);
    FileAccess access = access_of(from.descriptor()).access;
    access.named = {{false, 1234, 6}, {true, 4321, 4}};
    access.mask = 6;
    if (give_access(from.descriptor(), access) != 0 || !access_of(from.descriptor()).access.mask)
        GTEST_SKIP() << "the file system has no ACLs";
    EXPECT_EQ(access_of(from.descriptor()).access, access);
    ASSERT_EQ(give_access(to.descriptor(), access), 0);
    EXPECT_EQ(access_of(to.descriptor()).access, access);
    // The mode's group bits were the mask: without the ACL they must not become the group's.
    access.named.clear();
    access.mask.reset();
    ASSERT_EQ(give_access(to.descriptor(), access), 0);
    EXPECT_EQ(access_of(to.descriptor()).access, access);
    EXPECT_EQ(mode_of(to), 0600U);
}

TEST_F(AccessOfFiles, ByOPathAlsoWhereTheOwnerMayNotOpenIt) {
    (void)make("to", 0000);
    const auto to = in.file("to", O_PATH);
    ASSERT_TRUE(to.ok());
    FileAccess access = access_of(to.value().descriptor()).access;
    EXPECT_EQ(access.mode(), 0U);
    access.of_owner = 6;
    ASSERT_EQ(give_access(to.value().descriptor(), access), 0);
    EXPECT_EQ(mode_of(to.value()), 0600U);
}

TEST(FileAccess, AnAttributeIsReadAsItWasWritten) {
    const FileAccess access{1, 2, 6, 4, 0, 6, {{false, 5, 6}, {false, 7, 0}, {true, 3, 4}}};
    FileAccess read{1, 2};
    ASSERT_TRUE(read.take_attribute(access.to_attribute()));
    EXPECT_EQ(read, access);
    EXPECT_FALSE(read.take_attribute("short"));
    EXPECT_FALSE(read.take_attribute(access.to_attribute().substr(0, 13)));
}

TEST(FileAccess, WhoMakesAPartOfAnothersFileLeavesHimHisRights) {
    // rw-rw---- of 1:2, made by 9: the owner may not be in the group.
    const FileAccess fitted = FileAccess{1, 2, 6, 6, 0}.fitted_to(9, 2);
    EXPECT_EQ(fitted.named, (std::vector<FileAccess::Named>{{false, 1, 6}}));
    EXPECT_EQ(fitted.mode(), 0660U);
    // rw-rw-rw-: he needs no entry.
    EXPECT_TRUE((FileAccess{1, 2, 6, 6, 6}.fitted_to(9, 2).named.empty()));
    // An entry of his own names nobody but him.
    const FileAccess own = FileAccess{1, 2, 6, 0, 0, 6, {{false, 9, 6}}}.fitted_to(9, 2);
    EXPECT_EQ(own.named, (std::vector<FileAccess::Named>{{false, 1, 6}}));
}

TEST(FileAccess, AnotherGroupGetsWhatOthersHave) {
    const FileAccess fitted = FileAccess{1, 2, 6, 6, 4}.fitted_to(1, 3);
    EXPECT_EQ(fitted.of_group, 4U);
    EXPECT_EQ(fitted.named, (std::vector<FileAccess::Named>{{true, 2, 6}}));
    EXPECT_EQ((FileAccess{1, 2, 6, 0, 4}.fitted_to(1, 3).of_group), 0U) << "some are in both groups";
}

TEST(FileAccess, WithoutAnAclNobodyGetsMore) {
    EXPECT_EQ((FileAccess{1, 2, 6, 6, 4, 7, {{false, 5, 0}}}.mode_without_acl()), 0600U);
    EXPECT_EQ((FileAccess{1, 2, 6, 6, 4, 4, {{false, 5, 6}}}.mode_without_acl()), 0644U);
    EXPECT_EQ((FileAccess{1, 2, 6, 6, 4}.narrowed_by({1, 2, 6, 4, 0}).mode()), 0640U);
    EXPECT_EQ((FileAccess{1, 2, 6, 6, 4}.narrowed_by({1, 3, 6, 6, 4}).mode()), 0644U);
}

TEST_F(AccessOfFiles, WhatIsMadeInAFolderMayBeUsedAsItMay) {
    ASSERT_EQ(in.make_folder("part", 0777), 0);
    Folder part = in.folder("part").take();
    part.pass_on(part);
    const mode_t umask_before = ::umask(0);
    ASSERT_EQ(::chmod(folder.file("part").c_str(), 0750), 0);
    EXPECT_EQ(part.write_new("one", "text"), 0);
    EXPECT_EQ(part.make_folder("inner"), 0);
    EXPECT_EQ(part.folder("inner").value().write_new("two", ""), 0);
    ASSERT_EQ(::chmod(folder.file("part").c_str(), 0700), 0);
    EXPECT_EQ(part.replace("one", "draft", "new"), 0);
    EXPECT_TRUE(part.file("three", O_RDWR | O_CREAT).ok());
    ::umask(umask_before);
    EXPECT_EQ(mode_of(part.file("one").value()), 0600U);
    EXPECT_EQ(mode_of(part.file("three").value()), 0600U);
    EXPECT_EQ(mode_of(part.file("inner/two").value()), 0640U);
    struct stat inner{};
    ASSERT_EQ(part.status_of("inner", inner), 0);
    EXPECT_EQ(inner.st_mode & 0777, 0750U);
    // What is there keeps what it has.
    ASSERT_EQ(::chmod(folder.file("part/three").c_str(), 0644), 0);
    EXPECT_TRUE(part.file("three", O_RDWR | O_CREAT | O_TRUNC).ok());
    EXPECT_EQ(mode_of(part.file("three").value()), 0644U);
}

}  // namespace
}  // namespace ioweir::guarded
