"""Facts about models and settings: how large they are, in which precision they compute, how they are compiled."""
import functools

PARAMETERS_MAX = 20_000  # tensors, modules: beyond them the size is not known
COMPILE_SETTINGS = ("mode", "backend", "fullgraph", "dynamic")
SAID_MAX = 32            # changes of the settings that are told


def describe(torch, models):
    """The models together, each parameter once; None where no model has any. A figure that cannot be told is None."""
    seen, types, devices = set(), {}, set()
    count = trainable = size = tensors = 0
    classes, sharded, last = [], False, None
    for model in models:
        has_any = False
        for parameter in model.parameters():
            has_any = True
            if id(parameter) in seen:
                continue
            seen.add(id(parameter))
            tensors += 1
            if tensors > PARAMETERS_MAX:
                return {"classes": classes, "parameters": None, "reason": "more than %d tensors" % PARAMETERS_MAX}
            numbers = getattr(parameter, "ds_numel", None)  # DeepSpeed keeps parameters elsewhere
            numbers = parameter.numel() if numbers is None else int(numbers)
            count += numbers
            if parameter.requires_grad:
                trainable += numbers
            size += numbers * parameter.element_size()
            name = str(parameter.dtype).replace("torch.", "")
            types[name] = types.get(name, 0) + numbers
            devices.add(str(parameter.device))
            if last is None and parameter.dim() == 4:
                last = channels_last(torch, parameter)
        if has_any and len(classes) < 8:
            classes.append(type(model).__name__)
            sharded |= is_sharded(model)
    if not seen:
        return None
    shape = look_inside(torch, models)
    found = {"classes": classes, "parameters": count, "trainable": trainable, "bytes": size, "dtypes": types,
             "devices": sorted(devices)[:16], "channels_last": last, "reason": None}
    found.update(shape)
    if sharded:  # a shard's size is not the model's
        found.update(parameters=None, trainable=None, bytes=None, lookup_parameters=None,
                     reason="parameters are spread over ranks")
    return found


def channels_last(torch, parameter):
    """Whether a kernel of convolution lies in memory with its channels last; None where the order is the same."""
    if parameter.shape[1] == 1 or parameter.shape[2] * parameter.shape[3] == 1:
        return None
    return bool(parameter.is_contiguous(memory_format=torch.channels_last))


def is_sharded(model):
    return any(type(module).__name__ == "FullyShardedDataParallel" for module in model.modules())


def look_inside(torch, models):
    """What decides whether 6 operations per parameter and token is a fair estimate."""
    attention = experts = False
    tables, products = {}, set()
    modules = 0
    for model in models:
        for module in model.modules():
            modules += 1
            if modules > PARAMETERS_MAX:
                return {"attention": None, "experts": None, "lookup_parameters": None}
            name = type(module).__name__.lower()
            attention |= "attention" in name or "transformer" in name
            experts |= "moe" in name or "expert" in name
            parameters = vars(module).get("_parameters", {})  # of a scripted module an object that has no get()
            weight = parameters["weight"] if "weight" in parameters else None
            if weight is not None:
                if isinstance(module, torch.nn.Embedding):
                    tables[id(weight)] = weight.numel()
                else:
                    products.add(id(weight))
    # A table that is also the weight of the last layer is multiplied with there.
    lookups = sum(numbers for key, numbers in tables.items() if key not in products)
    return {"attention": attention, "experts": experts, "lookup_parameters": lookups}


def autocast_of(torch, device):
    """The type that autocast works in on this kind of device, as text; None: it is off. Without a call that warns."""
    dtype_of = getattr(torch, "get_autocast_dtype", None)
    if dtype_of is not None:
        try:
            on = torch.is_autocast_enabled(device)
        except RuntimeError:  # a kind that autocast does not know: "meta"
            return None
        return str(dtype_of(device)) if on else None
    if device == "cpu":
        return str(torch.get_autocast_cpu_dtype()) if torch.is_autocast_cpu_enabled() else None
    return str(torch.get_autocast_gpu_dtype()) if torch.is_autocast_enabled() else None


class Settings:
    """Precision and compilation as they are now; told once, and again when they have changed."""

    def __init__(self, torch, recorder):
        self.torch, self.recorder = torch, recorder
        self.compiled = None  # of the last torch.compile()
        self.said, self.said_count = None, 0
        self.wrap_compile()

    def look(self):
        """In the training thread, best where a model is about to be called: autocast is the thread's own."""
        try:
            found = self.now()
            if found != self.said and self.said_count < SAID_MAX:
                self.said, self.said_count = found, self.said_count + 1
                self.recorder.info("settings", found)
        except Exception:
            self.recorder.failed()

    def now(self):
        torch = self.torch
        autocast, dtype = self.autocast()
        cudnn = torch.backends.cudnn
        found = {"autocast": autocast, "autocast_dtype": dtype, "cudnn_benchmark": bool(cudnn.benchmark),
                 "deterministic": bool(torch.are_deterministic_algorithms_enabled()), "compile": self.compiled}
        found["tf32_matmul"], found["tf32_cudnn"] = self.tf32()
        return found

    def autocast(self):
        """(on, dtype) of the first kind of device for which it is on."""
        for device in ("cuda", "cpu"):
            dtype = autocast_of(self.torch, device)
            if dtype is not None:
                return True, dtype.replace("torch.", "")
        return False, None

    def tf32(self):
        """(matmul, cuDNN): whether float32 is computed as TF32. Torch's newer settings are asked by their own call: the
        older ones warn, or fail, once the program has used the newer."""
        precision = getattr(self.torch._C, "_get_fp32_precision_getter", None)
        if precision is not None:
            return precision("cuda", "matmul") == "tf32", precision("cuda", "conv") == "tf32"
        backends = self.torch.backends
        return bool(backends.cuda.matmul.allow_tf32), bool(backends.cudnn.allow_tf32)

    def wrap_compile(self):
        torch = self.torch
        plain = getattr(torch, "compile", None)
        if plain is None:
            return
        @functools.wraps(plain)
        def compile(*args, **kwargs):
            try:
                self.compiled = {key: plain_value(kwargs.get(key)) for key in COMPILE_SETTINGS}
            except Exception:
                self.recorder.failed()
            try:
                return plain(*args, **kwargs)
            except BaseException as error:
                error.__traceback__ = error.__traceback__.tb_next
                raise

        torch.compile = compile


def plain_value(value):
    if value is None or isinstance(value, (bool, str)):
        return value if not isinstance(value, str) else value[:64]
    return getattr(value, "__name__", type(value).__name__)
