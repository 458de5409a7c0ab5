// StatusBytes: how many bytes a status says, read and written on hot paths. MPI's own functions take some 170 instructions under MPICH.
#pragma once

#include <cstdint>
#include <cstring>

#include "mpi/mpi.hpp"

namespace ioweir::mpi {

class StatusBytes {
public:
    /// Sees whether the library in use lays statuses out as its header says. Until then, and else, MPI is asked.
    void arm() {
        constexpr MPI_Count some = (MPI_Count{5} << 33) + 7;
        MPI_Status status;
        std::memset(&status, 0, sizeof status);
        PMPI_Status_set_elements_x(&status, MPI_BYTE, some);
        direct_ = field(status) == some;
        if (!direct_) return;
        set_field(status, some - 1);
        MPI_Count bytes = -1;
        int cancelled = 1;
        direct_ = PMPI_Get_elements_x(&status, MPI_BYTE, &bytes) == MPI_SUCCESS && bytes == some - 1 &&
                  PMPI_Test_cancelled(&status, &cancelled) == MPI_SUCCESS && cancelled == 0;
    }

    /// -1 when the status does not say.
    [[nodiscard, gnu::always_inline]] std::int64_t operator()(const MPI_Status& status) const {
        if (direct_) [[likely]]
            return field(status);
        MPI_Count bytes = -1;
        return PMPI_Get_elements_x(&status, MPI_BYTE, &bytes) == MPI_SUCCESS ? bytes : -1;
    }

    /// So many bytes, and not cancelled.
    void set(MPI_Status& status, std::int64_t bytes) const {
        if (direct_) [[likely]]
            return set_field(status, bytes);
        PMPI_Status_set_elements_x(&status, MPI_BYTE, bytes);
        PMPI_Status_set_cancelled(&status, 0);
    }

private:
    static void set_field([[maybe_unused]] MPI_Status& status, [[maybe_unused]] std::int64_t bytes) {
#if defined(OPEN_MPI)
        status._ucount = static_cast<std::size_t>(bytes);
        status._cancelled = 0;
#elif defined(MPICH_NAME)
        status.count_lo = static_cast<int>(static_cast<std::uint32_t>(bytes));
        status.count_hi_and_cancelled = static_cast<int>(static_cast<std::uint32_t>(bytes >> 32) << 1);
#endif
    }
    static std::int64_t field([[maybe_unused]] const MPI_Status& status) {
#if defined(OPEN_MPI)
        return static_cast<std::int64_t>(status._ucount);
#elif defined(MPICH_NAME)
        return static_cast<std::int64_t>(static_cast<std::uint32_t>(status.count_hi_and_cancelled) >> 1) << 32 |
               static_cast<std::uint32_t>(status.count_lo);
#else
        return -1;
#endif
    }

    bool direct_ = false;
};

}  // namespace ioweir::mpi
