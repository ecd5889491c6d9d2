"""Names of what ran code from pickles, by reports and advisories: what loaders allowed, scanners overlooked, or what calls its
arguments; and names that only look as if they were allowed. Nothing here imports or calls them.
"""

from __future__ import annotations

__all__ = ["GADGETS"]

_NAMES = """
os.system os.popen os.execv os.spawnl os.path.os.system posix.system nt.system subprocess.run subprocess.check_output
pty.spawn builtins.eval builtins.exec builtins.compile builtins.getattr builtins.setattr builtins.__import__ builtins.open
builtins.map builtins.filter builtins.apply builtins.execfile builtins.dict.get builtins.dict.__getitem__ builtins.type
builtins.print builtins.bytes.fromhex builtins.object.__reduce_ex__ builtins.str.format builtins.vars builtins.globals
builtins.breakpoint operator.attrgetter operator.itemgetter operator.methodcaller operator.call _operator.attrgetter
functools.partial functools.reduce functools.partialmethod functools._make_key itertools.starmap types.FunctionType
types.CodeType importlib.import_module importlib._bootstrap.__import__ importlib.util.spec_from_file_location
pkgutil.resolve_name pkgutil.walk_packages pip.main pip._internal.main pip._internal.cli.main.main ensurepip._run_pip
venv.create runpy.run_path runpy._run_code code.InteractiveInterpreter.runcode timeit.timeit timeit.main cProfile.run
cProfile.runctx profile.Profile.run trace.Trace.run pdb.run bdb.Bdb.run doctest.debug_script idlelib.run.Executive.runcode
idlelib.pyshell.ModifiedInterpreter.runcommand idlelib.autocomplete.AutoComplete.get_entity idlelib.calltip.get_entity
lib2to3.pgen2.grammar.Grammar.loads lib2to3.pgen2.pgen.ParserGenerator.make_label logging.config._resolve
logging.config.listen test.support.script_helper.assert_python_ok asyncio.unix_events._UnixSubprocessTransport._start
multiprocessing.util.spawnv_passfds webbrowser.open ctypes.CDLL ctypes.CFUNCTYPE _ctypes.dlopen _io.FileIO _io.open
io.open_code shutil.copyfile shutil.rmtree distutils.file_util.write_file tempfile.mkstemp socket.create_connection
ssl.get_server_certificate urllib.request.urlopen http.client.HTTPConnection smtplib.SMTP aiohttp.ClientSession requests.get
pickle.loads _pickle.loads cloudpickle.loads dill.loads joblib.load marshal.loads shelve.open sqlite3.connect
yaml.unsafe_load pydoc.locate pydoc.pipepager inspect.getattr_static gc.get_objects sys.setrecursionlimit sys.modules.get
signal.alarm copyreg.__newobj__ copyreg.add_extension copyreg.pickle _codecs.decode codecs.decode codecs.open zlib.decompress
uuid._get_command_stdout platform.popen linecache.updatecache torch.load torch.serialization.load torch.serialization._load
torch.serialization.add_safe_globals torch.jit.load torch.jit.CompilationUnit torch.hub.load
torch.hub.load_state_dict_from_url torch.hub._load_local torch.storage._load_from_file torch.from_file
torch.jit.annotations.parse_type_line torch.jit.unsupported_tensor_ops.execWrapper torch.distributed.rpc.rpc_sync
torch.distributed.rpc.internal._run_function torch.distributed.nn.RemoteModule
torch.distributed.distributed_c10d._tensor_to_object torch._dynamo.guards.GuardBuilder.get
torch._inductor.codecache.compile_file torch._inductor.codecache.PyCodeCache.load
torch._inductor.runtime.compile_tasks._reload_python_module
torch.fx.experimental.symbolic_shapes.ShapeEnv.evaluate_guards_expression torch.fx.graph_module._forward_from_src
torch.fx._symbolic_trace.wrap torch.package.PackageImporter torch.ops.load_library torch.classes.load_library
torch.utils.cpp_extension.load_inline torch.utils.collect_env.run torch.utils._config_module.load_config
torch.utils.bottleneck.__main__.run_cprofile torch.utils.bottleneck.__main__.run_autograd_prof
torch.utils.data.datapipes.utils.decoder.basichandlers torch.utils._import_utils.dill_available
torch._utils._import_dotted_name torch._utils._rebuild_tensor_v2.__globals__.get torch.nn.Module.__setstate__
torch.nn.modules.module._global_forward_hooks.update torch.Tensor.apply_ torch.Tensor.set_ torch.UntypedStorage.from_file
torch.FloatStorage._new_shared_filename_cpu torch.multiprocessing.reductions.rebuild_storage_fd numpy.load
numpy.lib.npyio.load numpy.f2py.crackfortran.getlincoef numpy.f2py.crackfortran._eval_length
numpy.f2py.capi_maps.load_f2cmap_file numpy.f2py.diagnose.run_command numpy.testing._private.utils.runstring
numpy.testing.rundocs numpy.distutils.exec_command.exec_command numpy.ctypeslib.load_library
numpy.core._internal.sys.modules.get numpy.__builtins__.get numpy.prod.os.system numpy.memmap numpy.fromfile
numpy.core.multiarray.fromstring numpy.DataSource keras.layers.Lambda keras.models.load_model
transformers.dynamic_module_utils.get_class_from_dynamic_module pandas.read_pickle sklearn.utils._joblib.load
setuptools._vendor.jaraco.context.run collections.namedtuple collections.ChainMap
collections.OrderedDict.__init__.__globals__.get collections.OrderedDict.__reduce__ collections._sys.modules.get
fastlayers.load_weights fastlayers.formats.torch.machine.Machine.run fastlayers.formats.source.open_source Torch.Size
torch._utils._rebuild_tensor_v4 torch._utils..rebuild .system system os.
"""
# Letters of other alphabets, a point that is none, what cannot be seen, and names that are nearly allowed.
_LOOKALIKES = (
    "\u043es.system",
    "os\u2024.system",
    "t\u043erch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v\uff12",
    "collections.OrderedDict\u200b",
    "collections.OrderedDict\0",
    "collections.Ordered\u202eDict",
    "collections. OrderedDict",
    "Torch.Size",
    "torch..Size",
)
GADGETS = (*_NAMES.split(), *_LOOKALIKES)
