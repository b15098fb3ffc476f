"""Cross-domain similarities and private moments on Spark: the same results as on one machine, for ratings that one cannot hold.

Spark has an environment of its own (``pip install -c spark-constraints.txt 'tacit[spark]'``, Java 17 or newer); nothing else in
tacit imports it. Every function takes the frames of a session that is there already, on whatever cluster it runs. No rows come to
the driver: what it sees is counts, sums and what is written to Parquet.
"""
