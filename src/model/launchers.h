#pragma once
// How launchers tell a process which rank it is. Plain data.
#include <array>
#include <string_view>

namespace hotlap {

struct Launcher {
  std::string_view name, proof, rank, local_rank, world_size;
};
// The first whose proof is set counts; the hook's python/src/hotlap/_place.py goes by the same order.
inline constexpr std::array<Launcher, 10> kLaunchers{{
    {"torchrun", "TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK", "WORLD_SIZE"},
    {"horovod", "HOROVOD_RANK", "HOROVOD_RANK", "HOROVOD_LOCAL_RANK", "HOROVOD_SIZE"},
    {"openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"mvapich", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"},
    {"environment", "RANK", "RANK", "LOCAL_RANK", "WORLD_SIZE"},
    {"pmix", "PMIX_RANK", "PMIX_RANK", "PMIX_LOCAL_RANK", "PMIX_SIZE"},
    {"mpi", "PMI_RANK", "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"},
    {"jsm", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_SIZE"},
    {"flux", "FLUX_TASK_RANK", "FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE"},
    {"slurm", "SLURM_PROCID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
}};

}  // namespace hotlap
