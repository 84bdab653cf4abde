"""Who this process is: role, rank and attempt, from every launcher's environment and from the framework."""
import os
import sys

from hotlap import _wire

# (launcher, variable that proves it, rank, local rank, world size). The first one that is set counts.
LAUNCHERS = (
    ("torchrun", "TORCHELASTIC_RUN_ID", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("horovod", "HOROVOD_RANK", "HOROVOD_RANK", "HOROVOD_LOCAL_RANK", "HOROVOD_SIZE"),
    ("openmpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("mvapich", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_SIZE"),
    ("environment", "RANK", "RANK", "LOCAL_RANK", "WORLD_SIZE"),
    ("pmix", "PMIX_RANK", "PMIX_RANK", "PMIX_LOCAL_RANK", "PMIX_SIZE"),
    ("mpi", "PMI_RANK", "PMI_RANK", "MPI_LOCALRANKID", "PMI_SIZE"),
    ("jsm", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_LOCAL_RANK", "JSM_NAMESPACE_SIZE"),
    ("flux", "FLUX_TASK_RANK", "FLUX_TASK_RANK", "FLUX_TASK_LOCAL_ID", "FLUX_JOB_SIZE"),
    ("slurm", "SLURM_PROCID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"),
    ("lightning", "LOCAL_RANK", None, "LOCAL_RANK", "WORLD_SIZE"),
)
# Restarts by the launcher, from 0.
ATTEMPTS = ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT", "SM_RESTART_COUNT")
# What the recorder needs to find the recordings of one run. Nothing else of the environment leaves the process.
VARIABLES = (
    "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "NODE_RANK", "ROLE_RANK", "MASTER_ADDR",
    "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS", "SLURM_JOB_ID",
    "SLURM_STEP_ID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_NNODES",
    "SLURM_RESTART_COUNT", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "HOROVOD_RANK",
    "HOROVOD_LOCAL_RANK", "HOROVOD_SIZE", "SM_CURRENT_HOST", "SM_HOSTS", "SM_NUM_GPUS", "SM_TRAINING_JOB_NAME",
    "TRAINING_JOB_NAME", "ACCELERATE_MIXED_PRECISION", "ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED",
    "JOB_COMPLETION_INDEX", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES",
)


def number(environ, name):
    try:
        return int(environ[name]) if name else -1
    except (KeyError, ValueError):
        return -1


def launcher(environ):
    """(name, rank, local rank, world size); parts that are not known are -1."""
    for name, proof, rank, local_rank, world_size in LAUNCHERS:
        if proof in environ:
            found = (number(environ, rank), number(environ, local_rank), number(environ, world_size))
            if max(found) >= 0:
                return (name,) + found
    hosts, host = environ.get("SM_HOSTS"), environ.get("SM_CURRENT_HOST")
    if hosts and host:  # SageMaker: one process per host unless another launcher says more
        names = [part.strip(' []"') for part in hosts.split(",")]
        if host in names:
            return "sagemaker", names.index(host), 0, len(names)
    return "", -1, -1, -1


# In multiprocessing's settings of this process, which its children get however they are started, as plain text.
LOADER_KEY = "hotlap_loader"


def set_loader(text):
    """The loader whose fetchers and workers are made next."""
    sys.modules["multiprocessing.process"].current_process()._config[LOADER_KEY] = text


def loader():
    """The loader that this process, or this fetcher, works for; "" when it is not known."""
    process = sys.modules.get("multiprocessing.process")
    return process.current_process()._config.get(LOADER_KEY, "") if process is not None else ""


def worker_id():
    """Of a torch loader worker; -1 elsewhere."""
    worker = sys.modules.get("torch.utils.data._utils.worker")
    found = getattr(worker, "_worker_info", None)
    return -1 if found is None else found.id


def from_framework():
    """(rank, world size) of torch's process group once it exists, else None."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return distributed.get_rank(), distributed.get_world_size()
    except Exception:
        pass
    return None


def place():
    """(role, rank, local rank, world size, worker id, attempt) as the ring's first page has them."""
    environ = os.environ
    _, rank, local_rank, world_size = launcher(environ)
    group = from_framework()
    worker = worker_id()
    if group is not None and worker < 0:
        rank, world_size = group
    attempt = max([number(environ, name) for name in ATTEMPTS] + [-1])
    role = _wire.ROLE_LOADER if worker >= 0 else _wire.ROLE_RANK if rank >= 0 else _wire.ROLE_MAIN
    return role, rank, local_rank, world_size, worker, max(attempt, 0)


def description():
    """For the INFO record `launcher`."""
    environ = os.environ
    return {"name": launcher(environ)[0], "environment": {k: environ[k] for k in VARIABLES if k in environ}}
