// The POSIX backend: pread, pwrite and their vectored forms.
#pragma once

#include "storage/backend.hpp"

namespace ioweir::storage {

class PosixBackend : public Backend {
public:
    [[nodiscard]] Opened attempt_open(const char* path, int flags, mode_t mode) override;
    int attempt_close(int descriptor) override;
    std::int64_t attempt_write(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;
    int attempt_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override;
    void begin_flush(int descriptor, std::int64_t bytes, std::int64_t offset) override;
    std::int64_t attempt_read(int descriptor, const iovec* pieces, int count, std::int64_t offset) override;
};

}  // namespace ioweir::storage
