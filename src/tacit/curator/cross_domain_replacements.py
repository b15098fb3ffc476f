"""Mode 'moments': noisy sums of both domains, once, and a model made of them."""


def release(transfers, account, asked, noise, *, least=5):  # type: ignore
    raise NotImplementedError
