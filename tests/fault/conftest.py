import processes
import pytest


@pytest.fixture
def home(tmp_path):
    return processes.Home(tmp_path)
