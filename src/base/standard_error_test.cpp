#include "base/standard_error.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

namespace ioweir {
namespace {

/// Descriptor 2 is a file of its own folder; put back at the end.
class StandardError : public testing::Test {
protected:
    StandardError() {
        char pattern[] = "/tmp/ioweir-standard-error-XXXXXX";
        folder_ = ::mkdtemp(pattern);
        before_ = ::dup(STDERR_FILENO);
        put("log", O_WRONLY | O_CREAT);
        remember_standard_error();
    }
    ~StandardError() override {
        ::dup2(before_, STDERR_FILENO);
        ::close(before_);
        for (const char* name : {"log", "data", "fifo"}) ::unlink((folder_ + "/" + name).c_str());
        ::rmdir(folder_.c_str());
    }

    /// Into descriptor 2, as a program does that has closed it.
    void put(const char* name, int flags) const {
        ::close(STDERR_FILENO);
        ASSERT_EQ(::open((folder_ + "/" + name).c_str(), flags, 0600), STDERR_FILENO);
    }
    [[nodiscard]] std::string text_of(const char* name) const {
        char text[1 << 14];
        const int file = ::open((folder_ + "/" + name).c_str(), O_RDONLY);
        const ssize_t length = ::read(file, text, sizeof text);
        ::close(file);
        return {text, static_cast<std::size_t>(length < 0 ? 0 : length)};
    }

    std::string folder_;
    int before_ = -1;
};

TEST_F(StandardError, IsWrittenToAsItWasAtTheStart) {
    EXPECT_TRUE(say_line("one\n"));
    ::dup2(::dup(STDERR_FILENO), STDERR_FILENO);  // another descriptor of the same
    EXPECT_TRUE(say_line("two\n"));
    EXPECT_EQ(text_of("log"), "one\ntwo\n");
}

TEST_F(StandardError, ShowsWhatATerminalWouldObey) {
    EXPECT_TRUE(say_line("a\x1b[2J\x07\r\tb\nioweir: c\x7f\xc2\x9b\xe2\x80\xae\xef\xbf\xbf\xff\xc3 Z\xc3\xbcrich\n"));
    EXPECT_EQ(text_of("log"), "a\\x1b[2J\\x07\\r\\tb\\nioweir: c\\x7f\\x9b\\u202e\\uffff\\xff\\xc3 Z\xc3\xbcrich\n");
}

TEST_F(StandardError, LongLinesAreWhole) {
    const std::string letters(3000, 'x'), controls(2500, '\x1b');
    EXPECT_TRUE(say_line(letters + controls + "\n"));
    const std::string said = text_of("log");
    EXPECT_EQ(said.size(), 3000 + 4 * 2500 + 1);
    EXPECT_EQ(said.substr(0, 3008), letters + "\\x1b\\x1b");
    EXPECT_TRUE(said.ends_with("\\x1b\n"));
}

TEST_F(StandardError, IsLeftAloneWhereTheProgramHasAFileOfItsOwn) {
    put("data", O_WRONLY | O_CREAT);
    EXPECT_FALSE(say_line("ours\n"));
    EXPECT_EQ(text_of("data"), "");
    EXPECT_EQ(text_of("log"), "");
    put("log", O_WRONLY | O_APPEND);  // back again
    EXPECT_TRUE(say_line("ours\n"));
    EXPECT_EQ(text_of("log"), "ours\n");
}

TEST_F(StandardError, IsAnotherFileWhereItsNumberWasGivenToANewOne) {
    // File systems use the number of an inode again as soon as the file is gone.
    struct stat first{}, second{};
    ASSERT_EQ(::fstat(STDERR_FILENO, &first), 0);
    ::unlink((folder_ + "/log").c_str());
    put("data", O_WRONLY | O_CREAT);
    ASSERT_EQ(::fstat(STDERR_FILENO, &second), 0);
    EXPECT_FALSE(say_line("ours\n")) << "inode " << first.st_ino << ", then " << second.st_ino;
    EXPECT_EQ(text_of("data"), "");
}

TEST_F(StandardError, IsNoLongerThereWhenTheSameFileIsOpenForReading) {
    put("log", O_RDONLY);
    EXPECT_FALSE(say_line("ours\n"));
}

TEST_F(StandardError, MayBeClosed) {
    ::close(STDERR_FILENO);
    errno = ENOTTY;
    EXPECT_FALSE(say_line("ours\n"));
    EXPECT_EQ(errno, ENOTTY) << "errno is kept";
    // From the start: nothing that comes there later is ours.
    remember_standard_error();
    put("data", O_WRONLY | O_CREAT);
    EXPECT_FALSE(say_line("ours\n"));
    EXPECT_EQ(text_of("data"), "");
}

TEST_F(StandardError, IsHandedToALibraryThatComesLater) {
    const OpenFile at_start = remembered_standard_error();
    put("data", O_WRONLY | O_CREAT);
    remember_standard_error();
    EXPECT_TRUE(say_line("theirs\n"));
    remember_standard_error(at_start);
    EXPECT_FALSE(say_line("ours\n"));
    EXPECT_EQ(text_of("data"), "theirs\n");
}

}  // namespace
}  // namespace ioweir
