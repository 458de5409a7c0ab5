// What tests of containers share: one in a folder of its own, and reading it whole.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "container/container.hpp"
#include "container/files/subfiles.hpp"
#include "container/sharing/generations.hpp"
#include "storage/posix.hpp"

namespace ioweir::container {

inline std::string slurp(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

inline void spill(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

/// A folder that goes away, and in it an empty container at "file".
struct Place {
    explicit Place(std::int64_t groups) : Place(Shape{groups}) {}
    explicit Place(Shape shape, int version = newest_version) {
        char name[] = "/tmp/ioweir-container-XXXXXX";
        folder = ::mkdtemp(name);
        path = folder + "/file";
        header_file = new_header_file(shape).take();
        header_file.version = version;
        directory = directory_of(path, header_file);
        EXPECT_EQ(make(directory, path, header_file), 0);
        if (!directory.has_index()) {
            EXPECT_TRUE(make_subfiles(directory, {}).ok());
        }
        spill(path, to_text(header_file));
    }
    ~Place() { std::filesystem::remove_all(folder); }
    Place(const Place&) = delete;

    std::unique_ptr<Container> open(Role role) { return open(role, clock); }
    std::unique_ptr<Container> open(Role role, Clock& of_process) {
        auto opened = Container::open(backend, of_process, directory, role);
        EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message());
        return opened ? opened.take() : nullptr;
    }

    std::uint32_t begin() {
        const Generation generation = begin_generation(directory).value();
        clock.adopt(generation.after);
        locks[generation.number] = generation.lock;
        return generation.number;
    }
    /// Its job is no more.
    void die(std::uint32_t generation) { locks.erase(generation); }
    /// As the engine does it.
    int end(std::uint32_t generation, Left left = {}) {
        if (!directory.has_index()) {
            const auto subfiles = read_subfiles(directory);
            if (!subfiles || keep_sizes(directory, subfiles.value(), generation) != 0) return EIO;
        }
        locks.erase(generation);
        return end_generation(directory, generation, clock.last(), left);
    }

    storage::PosixBackend backend;
    Clock clock;
    std::string folder, path;
    HeaderFile header_file;
    Directory directory;
    std::map<std::uint32_t, std::shared_ptr<const GenerationLock>> locks;  ///< of generations whose jobs live
};

/// Records which flushes are begun and which are waited for, and takes its time with these.
class FlushRecorder final : public storage::Backend {
public:
    struct Begun {
        std::int64_t bytes, offset;
        friend bool operator==(const Begun&, const Begun&) = default;
    };
    std::vector<Begun> begun;
    std::int64_t begun_bytes = 0, waited_bytes = 0, most_ahead_bytes = 0;
    std::chrono::milliseconds flush_time{0};

    storage::Opened attempt_open(const char* path, int flags, mode_t mode) override {
        return posix_.attempt_open(path, flags, mode);
    }
    int attempt_close(int descriptor) override { return posix_.attempt_close(descriptor); }
    std::int64_t attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) override {
        return posix_.attempt_write(descriptor, pieces, count, offset);
    }
    std::int64_t attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) override {
        return posix_.attempt_read(descriptor, pieces, count, offset);
    }
    int attempt_flush(int, std::int64_t bytes, std::int64_t) override {
        if (flush_time.count() > 0) std::this_thread::sleep_for(flush_time);
        waited_bytes += bytes;
        return 0;
    }
    void begin_flush(int, std::int64_t bytes, std::int64_t offset) override {
        begun.push_back({bytes, offset});
        begun_bytes += bytes;
        most_ahead_bytes = std::max(most_ahead_bytes, begun_bytes - waited_bytes);
    }

private:
    storage::PosixBackend posix_;
};

inline std::string read_all(Container& container, std::int64_t bytes) {
    std::string text(static_cast<std::size_t>(bytes), '?');
    const auto done = container.read_at(-1, text.data(), bytes, 0);
    EXPECT_EQ(done.error, 0);
    text.resize(static_cast<std::size_t>(done.bytes));
    return text;
}

}  // namespace ioweir::container
